//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// Command lines that are refused, or answered, without a lock.
var refused = [][]string{
	{}, {"runn", "x", "true"}, {"help", "nonsense"}, {"--no-such-flag"},
	{"completion"}, {"completion", "ksh"},

	{"run"}, {"run", "x"}, {"run", "x", "--", ""}, {"run", "x", "-n", "--", "true"}, {"run", "--no-such-flag"},
	{"run", "-c", "", "x"}, {"run", "-c", "true", "x", "true"},
	{"run", "-n", "-w", "5", "x", "true"}, {"run", "-s", "--limit", "3", "x", "true"}, {"run", "-q", "-v", "x", "true"},
	{"run", "-k", "2", "x", "true"}, {"run", "--limit", "2", "-k", "3", "x", "true"}, {"run", "--limit", "0", "x", "true"},
	{"run", "-E", "256", "x", "true"}, {"run", "-E", "abc", "x", "true"}, {"run", "--no-wait=perhaps", "x", "true"},
	{"run", "-w", "-1", "x", "true"}, {"run", "-w", "soon", "x", "true"}, {"run", "-w", "99999999999", "x", "true"},
	{"run", "--ttl", "1ms", "x", "true"}, {"run", "--ttl", "721h", "x", "true"}, {"run", "--min-hold", "721h", "x", "true"},
	{"run", "--grace", "13", "x", "true"}, {"run", "--grace", "300h", "--ttl", "720h", "x", "true"},
	{"run", "--label", "job", "x", "true"}, {"run", "--label", "job=1", "--label", "job=2", "x", "true"},
	{"run", "", "true"}, {"run", "a\tb", "true"},
	{"run", "-s", "-x", "x", "true"}, {"run", "-e", "--limit", "3", "x", "true"}, {"run", "-c", "true", "x", "-c", "true"},
	{"run", "x", "-c"}, {"run", "x", "-c", ""}, {"run", "-o", "x", "true"}, {"run", "--nb", "--timeout", "5", "x", "true"},
	{"run", "x", "no-such-command"}, {"run", "x", "./no-interpreter"}, {"run", "x", "./no-program"},

	{"run", "--skip", "-w", "5", "x", "true"}, {"run", "--also", "x", "x", "true"}, {"run", "--max-hold", "0", "x", "true"}, {"run", "--health", "", "x", "true"},
	{"once"}, {"once", "x"}, {"once", "x", "true"}, {"once", "x", "", "--", "true"}, {"once", "x", "y"}, {"once", "x", "y", "--"},
	{"once", "x", "--", "true"}, {"once", "--every", "1h", "x", "y", "--", "true"}, {"once", "--every", "0.5", "x", "--", "true"}, {"once", "--every", "1h", strings.Repeat("x", 250), "--", "true"},
	{"elect"}, {"elect", "x"}, {"elect", "--ttl", "0", "x", "true"}, {"elect", "--grace", "13", "x", "true"}, {"elect", "x", "no-such-command"},
	{"acquire"}, {"acquire", "-n", "-w", "5", "x"}, {"acquire", "--handle", "", "x"}, {"acquire", "--handle", "no-program", "x"},
	{"acquire", "--handle", "no/such/dir", "x"}, {"--url", "mem:", "acquire", "x"},
	{"release", "pawl1_secret"}, {"release", "--handle", ""}, {"release", "--handle", "no-such-file"}, {"release", "--handle", "."},
	{"release", "--handle", "no-program"}, {"release", "--handle", "readable"}, {"renew", "--handle", "handle"},
	{"--url", "mem:", "renew", "--handle", "handle"},
	{"wait"}, {"wait", "x"}, {"wait", "-w", "721h", "x"}, {"bench", "x"}, {"bench", "--duration", "0"}, {"bench", "--clients", "0"}, {"--url", "mem:", "bench"},

	{"ls", "a", "b"}, {"watch"}, {"top", "a", "b"}, {"top"}, {"top", "--delay", "721h"}, {"show"}, {"show", "a", "b"}, {"doctor", "x"}, {"version", "x"},
	{"man"}, {"man", "a", "b"}, {"schema"}, {"schema", "redis"}, {"schema", "mysql", "--schema", "x"},
	{"break"}, {"break", "--fence", "1", "--yes", "x"}, {"break", "--json", "x"}, {"break", "--fence", "abc", "x"},

	{"serve", "x"}, {"serve", "--listen", "nonsense"}, {"serve", "--listen", ":7420"}, {"serve", "--tls-cert", "a"}, {"serve", "--client-ca", "a"},
	{"serve", "--host", "locks.example:443"}, {"--url", "mem:", "serve", "--listen", "127.0.0.1:99999"}, {"--url", "mem:", "serve", "--token-file", "no-such-file"},
	{"--url", "mem:", "serve", "--token-file", "no-program"}, {"--url", "mem:", "serve", "--listen", "127.0.0.1:99999", "--token-file", "readable-token"}, {"--url", "mem:", "serve", "--tls-cert", "handle", "--tls-key", "handle"},

	{"ls"}, {"show", "x"}, {"break", "--yes", "x"}, // where nothing was ever locked
	{"ls", "--url", ""}, {"ls", "--namespace", ""}, {"ls", "--url", "/var/lib/locks.db"}, {"ls", "--url", "nosuch://host"},
	{"ls", "--url", "redis://::1:7717"}, {"ls", "--url", "secret@host:6379"}, {"ls", "--url", "secret:pw@host"}, {"ls", "--url", "sqlite:no.db"}, {"ls", "--url", "sqlite:no.db?nope=1"},
	{"ls", "--url", "mem:"}, {"doctor", "--url", "mem:"}, {"--url", "mem:", "show", "x"},
}

func TestMessagesAreAsInTheGoldenFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv(urlVariable, "") // so that it is as before at the end
	must(os.Unsetenv(urlVariable))
	handle := handleOf(`{"b":"sqlite","n":"x","t":"AQAAAAAAAAAAAAAAAAAAAA==","f":17,"l":10000000000,"w":2147483647,"of":2147483647}`)
	for _, file := range []struct {
		name, text string
		mode       fs.FileMode
	}{
		{"no-interpreter", "#!/no/such/interpreter\n", 0o700}, {"no-program", "", 0o600}, {"readable", "words", 0o644}, {"readable-token", "0123456789abcdef0123456789abcdef", 0o644}, {"handle", handle, 0o600},
	} {
		// Chmod sets the mode whatever the umask is.
		noError(t, errors.Join(os.WriteFile(file.name, []byte(file.text), file.mode), os.Chmod(file.name, file.mode)))
	}
	var out bytes.Buffer
	v := &output{out: &out, err: &out}
	for _, args := range refused {
		fmt.Fprintf(&out, "$ pawl%s\n", shown(args))
		if code := execute(v, args); code != 0 {
			fmt.Fprintf(&out, "[exit code %d]\n", code)
		}
		out.WriteByte('\n')
	}
	for _, env := range [][2]string{
		{urlVariable, ""}, {urlFileVariable, ""}, {urlFileVariable, "no-such-file"}, {urlFileVariable, "no-program"}, {namespaceVariable, ""}, {namespaceVariable, "a//b"}, {urlFileVariable, "readable"},
	} {
		t.Setenv(env[0], env[1])
		fmt.Fprintf(&out, "$ %s=%s pawl ls\n", env[0], env[1])
		fmt.Fprintf(&out, "[exit code %d]\n\n", execute(v, []string{"ls"}))
		must(os.Unsetenv(env[0]))
	}
	t.Setenv(urlVariable, "mem:")
	t.Setenv(urlFileVariable, "readable")
	fmt.Fprint(&out, "$ PAWL_URL=mem: PAWL_URL_FILE=readable pawl ls\n")
	fmt.Fprintf(&out, "[exit code %d]\n\n", execute(v, []string{"ls"}))
	must(errors.Join(os.Unsetenv(urlVariable), os.Unsetenv(urlFileVariable)))
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	fmt.Fprint(&out, "$ HOME= pawl ls\n")
	execute(v, []string{"ls"})

	cmd := exec.Command("pawl", "--url", "mem:", "run", "x", "--", "true")
	cmd.Stdout, cmd.Stderr = &out, &out
	fmt.Fprint(&out, "\n$ pawl --url mem: run x -- true\n")
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	damaged := damagedFile(t, []string{"x"}, []string{"x"})
	fmt.Fprint(&out, "\n$ pawl ls # and a row is damaged\n")
	fmt.Fprintf(&out, "[exit code %d]\n", execute(v, []string{"ls", "--url", damaged}))
	damagedDir := filepath.Dir(strings.TrimPrefix(damaged, "sqlite:"))
	sayClaims(t, &out, v)
	sayHandles(t, &out, v)
	sayTerms(t, &out, v)
	sayLosses(&out, v)
	sayBreaks(t, &out, v)
	sayTables(t, &out, v)
	sayProofs(t, &out, v)
	wantGolden(t, "messages.txt", still(t, strings.ReplaceAll(out.String(), damagedDir, dir), dir))
}

// shown quotes arguments for a shell.
func shown(args []string) (line string) {
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, "\t ") {
			a = fmt.Sprintf("%q", a)
		}
		line += " " + a
	}
	return line
}

// still removes from a text what changes from run to run, and with each backend.
func still(t *testing.T, text, dir string) string {
	t.Helper()
	host, err := os.Hostname()
	noError(t, err)
	text = strings.ReplaceAll(text, dir, "DIR")
	text = strings.ReplaceAll(text, strings.Join(backends(), " "), "SCHEMES")
	text = strings.ReplaceAll(text, fmt.Sprintf("%s:%d", host, os.Getpid()), "HOST:PID")
	for pattern, by := range map[string]string{`\b\d{16}\b`: "FENCE", `\b\d\d:\d\d:\d\d\b`: "TIME", `\b[12]\d\.\d+s left`: "30s left"} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
	}
	return text
}

var (
	someone = pawl.Owner{Host: "web-1", PID: 4242, Labels: map[string]string{"job": "42"}}
	held    = &pawl.HeldError{Name: "x", Position: 2, Holders: 1, Holder: pawl.Holder{
		Owner: someone, Fence: 1763626152000001, Permits: driver.Exclusive, Limit: driver.Exclusive, ExpiresIn: 21 * time.Second,
	}}
	lost        = &pawl.LostError{Name: "x", Fence: 1763626152000001, Reason: pawl.ReasonExpired}
	unreachable = &driver.Error{Backend: "redis host:6379", Op: "acquire", Err: errors.New("connection refused"), Hint: "is the server up?"}
)

// sayClaims prints how a claim can end, and the messages on the way.
func sayClaims(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	j := &job{v: v, name: "x", patience: time.Minute}
	tries := &job{v: v, name: "x", try: true, patience: tryTimeout}
	for _, c := range []struct {
		what string
		j    *job
		over bool
		err  error
	}{
		{"held, with -n", tries, false, held},
		{"held, with -w 1m", j, true, held},
		{"no answer, with -w 1m", j, true, context.DeadlineExceeded},
		{"unavailable, with -w 1m", j, true, fmt.Errorf("%w: %w", context.DeadlineExceeded, unreachable)},
		{"unavailable", j, false, unreachable},
	} {
		fmt.Fprintf(out, "\n# %s\n", c.what)
		v.sayError(c.j.refused(c.over, c.err).(*exit).err)
	}

	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	lease, err := c.Mutex("x").Lock(t.Context())
	noError(t, err)
	t.Setenv(nameVariable, "x")
	t.Setenv(fenceVariable, "1763626152000001")
	fmt.Fprint(out, "\n# waiting, with -v, for one's own parent\n")
	o := (&claimFlags{verbose: true}).options(v, &location{v: v}).Observer
	o.Queued(pawl.QueuedEvent{Event: pawl.Event{Name: "x"}, Held: held})
	o.Acquired(pawl.AcquiredEvent{Event: pawl.Event{Name: "x"}, Lease: lease, Waited: 90 * time.Second})
	o.Failed(pawl.FailedEvent{Event: pawl.Event{Name: "x"}, Op: "acquire", Err: unreachable})
	noError(t, c.Close())
	fmt.Fprint(out, "\n# lost before the start\n")
	j.signals = make(chan os.Signal)
	v.sayError(j.hold(lease).(*exit).err)
}

// handleOf is a handle with this content, and its checksum.
func handleOf(says string) string {
	b := binary.BigEndian.AppendUint32([]byte(says), crc32.ChecksumIEEE([]byte(says)))
	return handleBegin + base64.RawURLEncoding.EncodeToString(b)
}

// sayHandles prints the messages about a handle.
func sayHandles(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	fmt.Fprint(out, "\n# renew, release: the lease is over\n")
	v.sayError(notHeldAnyMore(lost).(*exit).err)
	v.sayError(notHeldAnyMore(&pawl.LostError{Name: "x", Fence: lost.Fence, Reason: pawl.ReasonBroken}).(*exit).err)
	v.sayError(notHeldAnyMore(&pawl.LostError{Name: "x", Fence: lost.Fence, Reason: pawl.ReasonBroken, By: pawl.Owner{Host: "web-1", PID: 7, Labels: map[string]string{"by": "ann", "reason": "it hangs"}}}).(*exit).err)

	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close()
	lease, err := c.Mutex("x").Lock(t.Context())
	noError(t, err)
	handle, err := lease.Detach(t.Context())
	noError(t, err)
	fmt.Fprint(out, "\n# acquire --handle, and the file is not to be replaced\n")
	v.sayError((&handleFile{path: "lock", old: string(handle)}).replaceable(t.Context(), c, &location{}))
	v.sayError((&handleFile{path: "lock", old: handleBegin}).replaceable(t.Context(), c, &location{}))
	elsewhere := handleOf(
		`{"b":"memory","p":"memory of another host","n":"x","t":"AQAAAAAAAAAAAAAAAAAAAA==","f":17,"l":10000000000,"w":2147483647,"of":2147483647}`)
	v.sayError((&handleFile{path: "lock", old: elsewhere}).replaceable(t.Context(), c, &location{}))
	unknown := handleOf(
		`{"b":"memory","p":"memory","n":"z","t":"AQAAAAAAAAAAAAAAAAAAAA==","f":17,"l":10000000000,"w":2147483647,"of":2147483647}`)
	v.sayError((&handleFile{path: "lock", old: unknown, since: time.Now()}).replaceable(t.Context(), c, &location{}))

	fmt.Fprint(out, "\n# acquire, and nobody can be given the handle\n")
	lease, err = c.Mutex("y").Lock(t.Context())
	noError(t, err)
	a := acquireCommand{job: &job{v: &output{out: brokenPipe{}, err: out}, signals: make(chan os.Signal)}}
	v.sayError(a.handOver(c, lease).(*exit).err)
	if e, err := c.Inspect(t.Context(), "y"); err != nil || len(e.Holders) > 0 {
		t.Errorf("it is left held: %+v, %v", e, err)
	}

	fmt.Fprint(out, "\n# wait\n")
	w := &waitCommand{name: "x", patience: time.Minute}
	v.sayError(w.unanswered().(*exit).err)
	v.sayError(fmt.Errorf("gave up after %v: %s", w.patience, inTheWay(&pawl.Entry{Name: "x", Holders: []pawl.Holder{held.Holder}})))
}

// A brokenPipe fails every write.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// sayTerms prints what elect says about a backend that fails, and bench about another
// bench.
func sayTerms(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	fmt.Fprint(out, "\n# elect, while the backend is down\n")
	o := (&election{job: &job{v: v}}).observe((&claimFlags{}).options(v, &location{v: v})).Observer
	for range 2 { // printed once
		o.Failed(pawl.FailedEvent{Event: pawl.Event{Name: "x"}, Op: "acquire", Err: unreachable})
	}

	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close()
	mustGet(c.Mutex(benchName).Lock(t.Context()))(t)
	fmt.Fprint(out, "\n# bench, beside another one\n")
	v.sayError((&bench{v: v, clients: []*pawl.Client{c}}).run(t.Context(), "", nil, 0).(*exit).err)
	fmt.Fprint(out, "\n# bench\n")
	for _, at := range []time.Duration{0, 3 * time.Second, 10 * time.Second, 11 * time.Second} {
		fmt.Fprintln(out, bar(at, 10*time.Second, int64(at/1000)))
	}
	p := latencyStats{took: []time.Duration{time.Second, 2345678, 45678, 999}}
	p.finish(10 * time.Second)
	noError(t, printBench(out, "redis host:6379", 4, p, latencyStats{}))
}

// sayLosses prints the messages at the end of a command.
func sayLosses(out *bytes.Buffer, v *output) {
	fmt.Fprint(out, "\n# lost while the command runs\n")
	v.sayLost(lost)
	v.sayTooLong("x", time.Hour)
	v.say("%s", notPrinted(12))
	v.warnUndelivered(syscall.SIGTERM, syscall.EPERM)
	fmt.Fprint(out, "\n# once\n")
	v.sayDone("x", []byte("2026-01-02"), 0)
	v.sayDone("x", []byte("2026-01-02T03:04:05.000000000Z"), time.Hour)
	v.sayError(task{key: "2026-01-02"}.fits("x", []byte("k1")))
	v.sayError(notRecorded(unreachable).(*exit).err)
	v.sayError((&job{stopsWaiting: true, storeDone: func(jobLease) error { return nil }}).recordDone(nil).(*exit).err)
	v.sayError(errStillRunning)
	fmt.Fprint(out, "\n# when the command has ended\n")
	v.warnReleased(nil)
	v.warnReleased(lost)
	v.warnReleased(unreachable)
	v.warnNotReleased("x")

	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	fmt.Fprint(out, "\n# the command cannot be executed\n")
	v.sayError(notStarted("./no-interpreter", filepath.Join(dir, "no-interpreter"), fs.ErrPermission).(*exit).err)
	v.sayError(notStarted("report", "/bin/report", &fs.PathError{Op: "fork/exec", Path: "/bin/report", Err: fs.ErrPermission}).(*exit).err)
}

// sayBreaks prints what break says about leases.
func sayBreaks(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close()
	b := &breakCommand{v: v, client: c, name: "x"}
	say := func(what string, f func() error) {
		fmt.Fprintf(out, "\n# %s\n", what)
		err := f()
		if e, ok := errors.AsType[*exit](err); ok {
			err = e.err
		}
		if err != nil {
			v.sayError(err)
		}
	}
	say("break --fence 17, and nobody holds it", func() error { return b.one(t.Context(), 17) })
	say("break --yes, and nobody holds it", func() error { return b.all(t.Context()) })
	for range 3 {
		mustGet(c.RWMutex("x").RLock(t.Context()))(t)
	}
	say("break --fence 17, and others hold it", func() error { return b.one(t.Context(), 17) })
	b.v = &output{out: new(bytes.Buffer), err: out}
	say("break, without a terminal", func() error { return b.ask(t.Context(), newBreak(v, &location{v: v})) })
	b.v = v
	e, err := c.Inspect(t.Context(), "x")
	noError(t, err)
	say("break --fence", func() error { return b.one(t.Context(), e.Holders[0].Fence) })
	b.delay = -1
	say("break --yes --delay 0", func() error { return b.all(t.Context()) })
}

// sayTables prints the output of ls, show and doctor.
func sayTables(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	kept := pawl.Holder{Owner: someone, Fence: 17, Permits: 2, Limit: 3, Since: now.AddDate(0, 0, -1), TTL: 2500 * time.Millisecond, ExpiresIn: 1500 * time.Millisecond, Released: true}
	reader := pawl.Holder{Owner: pawl.Owner{Host: "a\x1b", PID: 7}, Fence: 18, Permits: 1, Limit: driver.Unlimited, Since: now, TTL: time.Minute, ExpiresIn: 12345 * time.Microsecond}
	waits := pawl.Waiter{Owner: someone, Permits: driver.Exclusive, Limit: driver.Exclusive, Since: now, ExpiresIn: time.Second}
	entries := []pawl.Entry{
		{Name: "free"}, {Name: "closed", Fence: 3, ClosedFor: 5 * time.Second}, {Name: " odd\n", Fence: 3, Waiters: []pawl.Waiter{waits}},
		{Name: "gpu", Fence: 19, Holders: []pawl.Holder{kept, {Owner: someone, Fence: 19, Permits: 1, Limit: 4, Since: now, TTL: 30 * time.Second, ExpiresIn: time.Second}}, Waiters: []pawl.Waiter{{Owner: someone, Permits: 5, Limit: 5, Since: now}}},
		{Name: "held", Fence: 18, Holders: []pawl.Holder{kept, reader}, Waiters: []pawl.Waiter{waits}, Value: []byte("10.0.0.7\n"), ValueFence: 17},
		{Name: "part", Fence: 18, Holders: []pawl.Holder{reader}, ClosedFor: 3 * time.Second},
	}
	for _, e := range entries {
		fmt.Fprintln(out)
		noError(t, printEntry(out, e, now))
	}
	fmt.Fprint(out, "\n# watch\n")
	for _, e := range entries {
		fmt.Fprintln(out, watchLine(&e))
	}
	v.sayBack()
	fmt.Fprintln(out)
	noError(t, printList(out, entries, now))
	for _, findings := range [][]pawl.Finding{nil, {
		{Severity: "error", Subject: "persistence", Detail: "appendonly is no", Advice: "set it to yes"},
		{Severity: "info", Subject: "tracking", Detail: "one line\nanother", Advice: "none"},
	}} {
		fmt.Fprint(out, "\n# doctor\n")
		noError(t, printFindings(out, findings))
		if err := verdict(findings); err != nil {
			v.sayError(err.(*exit).err)
		}
	}
}
