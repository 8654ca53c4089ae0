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
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// Pawl refuses or answers the command lines of the golden file without taking a lock.
func TestRefusalsAreAsInTheGoldenFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv(urlVariable, "") // restores the variable after the test
	must(os.Unsetenv(urlVariable))
	noError(t, os.CopyFS(dir, os.DirFS(filepath.Join(goldenFolder, "../histories"))))
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
	file := mustGet(os.ReadFile(filepath.Join(goldenFolder, "refused.txt")))(t)
	var out bytes.Buffer
	v := &output{out: &out, err: &out}
	for line := range strings.Lines(string(file)) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		if !isCommand {
			continue
		}
		out.WriteString(line)
		t.Run(strings.TrimSpace(command), func(t *testing.T) { // so that Setenv ends with the command
			args := splitWords(t, command)
			for ; args[0] != "pawl"; args = args[1:] {
				name, value, _ := strings.Cut(args[0], "=")
				t.Setenv(name, value)
			}
			if code := execute(v, args[1:]); code != 0 {
				fmt.Fprintf(&out, "[exit code %d]\n", code)
			}
		})
		out.WriteByte('\n')
	}
	wantGolden(t, "refused.txt", normalized(t, out.String(), dir))
}

// splitWords returns the words of a line, some of which are quoted.
func splitWords(t *testing.T, line string) (words []string) {
	t.Helper()
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimPrefix(line, " ") {
		word, rest, _ := strings.Cut(line, " ")
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			word, rest = mustGet(strconv.Unquote(quoted))(t), line[len(quoted):]
		}
		words, line = append(words, word), rest
	}
	return words
}

// handleOf returns a handle with this content, and its checksum.
func handleOf(content string) string {
	b := binary.BigEndian.AppendUint32([]byte(content), crc32.ChecksumIEEE([]byte(content)))
	return handlePrefix + base64.RawURLEncoding.EncodeToString(b)
}

// Scripts cannot cause each message in all its forms. The golden file has the others.
func TestMessagesAreAsInTheGoldenFile(t *testing.T) {
	var out bytes.Buffer
	v := &output{out: &out, err: &out}
	sayClaims(t, &out, v)
	sayLosses(t, &out, v)
	sayTables(t, &out, v)
	sayProve(t, &out, v)
	wantGolden(t, "messages.txt", normalized(t, out.String(), t.TempDir()))
}

// normalized replaces the parts of a text that change from run to run or with the build.
func normalized(t *testing.T, text, dir string) string {
	t.Helper()
	host := mustGet(os.Hostname())(t)
	text = strings.ReplaceAll(text, dir, "DIR")
	text = strings.ReplaceAll(text, strings.Join(urlPrefixes(), " "), "SCHEMES")
	text = strings.ReplaceAll(text, fmt.Sprintf("%s:%d", host, os.Getpid()), "HOST:PID")
	for pattern, replacement := range map[string]string{`\b\d{16}\b`: "FENCE", `\b\d\d:\d\d:\d\d\b`: "TIME", `\b[12]\d\.\d+s left`: "30s left"} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, replacement)
	}
	return text
}

var (
	exampleOwner = pawl.Owner{Host: "web-1", PID: 4242, Labels: map[string]string{"job": "42"}}
	errHeld      = &pawl.HeldError{Name: "x", Position: 2, Holders: 1, Holder: pawl.Holder{
		Owner: exampleOwner, Fence: 1763626152000001, Permits: driver.Exclusive, Limit: driver.Exclusive, ExpiresIn: 21 * time.Second,
	}}
	errLost        = &pawl.LostError{Name: "x", Fence: 1763626152000001, Reason: pawl.ReasonExpired}
	errUnreachable = &driver.Error{Backend: "redis host:6379", Op: "acquire", Err: errors.New("connection refused"), Hint: "is the server up?"}
)

// sayClaims prints the messages of claims.
func sayClaims(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	j := &job{v: v, name: "x", maxWait: time.Minute}
	tryJob := &job{v: v, name: "x", noWait: true, maxWait: tryTimeout}
	for _, c := range []struct {
		what     string
		j        *job
		timedOut bool
		err      error
	}{
		{"held, with -n", tryJob, false, errHeld},
		{"held, with -w 1m", j, true, errHeld},
		{"no answer, with -w 1m", j, true, context.DeadlineExceeded},
		{"unavailable, with -w 1m", j, true, fmt.Errorf("%w: %w", context.DeadlineExceeded, errUnreachable)},
		{"unavailable", j, false, errUnreachable},
	} {
		fmt.Fprintf(out, "\n# %s\n", c.what)
		v.sayError(c.j.claimError(c.timedOut, c.err).(*exit).err)
	}

	c := mustGet(pawl.New(memlock.New(nil), nil))(t)
	lease := mustGet(c.Mutex("x").Lock(t.Context()))(t)
	t.Setenv(nameVariable, "x")
	t.Setenv(fenceVariable, "1763626152000001")
	fmt.Fprint(out, "\n# waiting, with -v, for one's own parent\n")
	o := (&claimFlags{verbose: true}).options(v, &location{v: v}).Observer
	o.Queued(pawl.QueuedEvent{Event: pawl.Event{Name: "x"}, Held: errHeld})
	o.Acquired(pawl.AcquiredEvent{Event: pawl.Event{Name: "x"}, Lease: lease, Waited: 90 * time.Second})
	o.Failed(pawl.FailedEvent{Event: pawl.Event{Name: "x"}, Op: "acquire", Err: errUnreachable})
	noError(t, c.Close())
	fmt.Fprint(out, "\n# lost before the start\n")
	j.signals = make(chan os.Signal)
	v.sayError(j.hold(lease).(*exit).err)

	fmt.Fprint(out, "\n# elect, while the backend is down\n")
	o = (&election{job: &job{v: v}}).observe((&claimFlags{}).options(v, &location{v: v})).Observer
	for range 2 { // printed once
		o.Failed(pawl.FailedEvent{Event: pawl.Event{Name: "x"}, Op: "acquire", Err: errUnreachable})
	}

	fmt.Fprint(out, "\n# bench\n")
	for _, at := range []time.Duration{0, 3 * time.Second, 10 * time.Second, 11 * time.Second} {
		fmt.Fprintln(out, progressBar(at, 10*time.Second, int64(at/1000)))
	}
}

// sayLosses prints the messages at the end of a command.
func sayLosses(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	fmt.Fprint(out, "\n# lost while the command runs\n")
	v.sayLost(errLost)
	v.sayTooLong("x", time.Hour)
	v.say("%s", notPrinted(12))
	v.warnUndelivered(syscall.SIGTERM, syscall.EPERM)
	fmt.Fprint(out, "\n# once\n")
	v.sayDone("x", []byte("2026-01-02"), 0)
	v.sayDone("x", []byte("2026-01-02T03:04:05.000000000Z"), time.Hour)
	v.sayError(task{key: "2026-01-02"}.checkForm("x", []byte("k1")))
	v.sayError(notRecorded(errUnreachable).(*exit).err)
	v.sayError((&job{stopsWaiting: true, storeDone: func(jobLease) error { return nil }}).recordDone(nil).(*exit).err)
	v.sayError(errStillRunning)
	fmt.Fprint(out, "\n# when the command has ended\n")
	v.warnReleased(nil)
	v.warnReleased(errLost)
	v.warnReleased(errUnreachable)
	v.warnNotReleased("x")

	script := filepath.Join(t.TempDir(), "no-interpreter")
	noError(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o600))
	fmt.Fprint(out, "\n# the command cannot be executed\n")
	v.sayError(notStarted("./no-interpreter", script, fs.ErrPermission).(*exit).err)
	v.sayError(notStarted("report", "/bin/report", &fs.PathError{Op: "fork/exec", Path: "/bin/report", Err: fs.ErrPermission}).(*exit).err)
}

// sayTables prints the output of ls, show and doctor.
func sayTables(t *testing.T, out *bytes.Buffer, v *output) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	kept := pawl.Holder{Owner: exampleOwner, Fence: 17, Permits: 2, Limit: 3, Since: now.AddDate(0, 0, -1), TTL: 2500 * time.Millisecond, ExpiresIn: 1500 * time.Millisecond, Released: true}
	reader := pawl.Holder{Owner: pawl.Owner{Host: "a\x1b", PID: 7}, Fence: 18, Permits: 1, Limit: driver.Unlimited, Since: now, TTL: time.Minute, ExpiresIn: 12345 * time.Microsecond}
	waiter := pawl.Waiter{Owner: exampleOwner, Permits: driver.Exclusive, Limit: driver.Exclusive, Since: now, ExpiresIn: time.Second}
	entries := []pawl.Entry{
		{Name: "free"}, {Name: "closed", Fence: 3, ClosedFor: 5 * time.Second}, {Name: " odd\n", Fence: 3, Waiters: []pawl.Waiter{waiter}},
		{Name: "gpu", Fence: 19, Holders: []pawl.Holder{kept, {Owner: exampleOwner, Fence: 19, Permits: 1, Limit: 4, Since: now, TTL: 30 * time.Second, ExpiresIn: time.Second}}, Waiters: []pawl.Waiter{{Owner: exampleOwner, Permits: 5, Limit: 5, Since: now}}},
		{Name: "held", Fence: 18, Holders: []pawl.Holder{kept, reader}, Waiters: []pawl.Waiter{waiter}, Value: []byte("10.0.0.7\n"), ValueFence: 17},
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
	v.sayAnswersAgain()
	fmt.Fprintln(out)
	noError(t, printList(out, entries, now))
	for _, findings := range [][]pawl.Finding{nil, {
		{Severity: "error", Subject: "persistence", Detail: "appendonly is no", Advice: "set it to yes"},
		{Severity: "info", Subject: "tracking", Detail: "one line\nanother", Advice: "none"},
	}} {
		fmt.Fprint(out, "\n# doctor\n")
		noError(t, printFindings(out, findings))
		if err := verdictError(findings); err != nil {
			v.sayError(err.(*exit).err)
		}
	}
}
