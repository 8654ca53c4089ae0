package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-go/pawl"
)

// The command under test is this test binary, so the race detector watches it, too.
func TestMain(m *testing.M) {
	if f := flag.Lookup("test.parallel"); f != nil {
		must(f.Value.Set("8")) // mostly they wait; what the command line says comes later, and wins
	}
	// Under the race detector each process would sleep for a second at its end.
	must(os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")))
	testscript.Main(m, map[string]func(){
		"pawl": func() { os.Exit(pawlMain()) },
	})
}

// The scripts in testdata are the manual, as tests. Besides the commands of testscript they have
//
//	exits CODE COMMAND...           run it, and want that exit code
//	waitfor held|free|closed NAME   until the name is so
//	waitfor waiters N NAME          until so many wait for it
//	waitfor file FILE               until it is there
//	mode FILE PERM                  its permissions are these
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("PAWL_URL", "")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("ESC", "\x1b")
			env.Setenv("TAB", "\t")
			env.Setenv("BIDI", "\u202e") // right-to-left override
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   scriptExits,
			"waitfor": scriptWaitfor,
			"mode":    scriptMode,
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func scriptWaitfor(ts *testscript.TestScript, _ bool, args []string) {
	what, rest := args[0], args[1:]
	if what == "file" {
		err := poll(func() bool { _, err := os.Stat(ts.MkAbs(rest[0])); return err == nil })
		ts.Check(err)
		return
	}
	url := ts.Getenv("PAWL_URL")
	if url == "" {
		url = fileURL(filepath.Join(ts.Getenv("XDG_STATE_HOME"), "pawl", "locks.db"))
	}
	c, err := pawl.Open(context.Background(), url, nil)
	ts.Check(err)
	defer func() { ts.Check(closeSoon(c)) }()
	name := rest[len(rest)-1]
	var e pawl.Entry
	err = poll(func() bool {
		e, err = c.Entry(context.Background(), name)
		ts.Check(err)
		switch what {
		case "held":
			return len(e.Holders) > 0
		case "free":
			return len(e.Holders) == 0 && e.ClosedFor == 0
		case "closed":
			return e.ClosedFor > 0
		case "waiters":
			return strconv.Itoa(len(e.Waiters)) == rest[0]
		}
		ts.Fatalf("waitfor: what is %q?", what)
		return false
	})
	if err != nil {
		ts.Fatalf("%v: %+v", err, e)
	}
}

// mode FILE PERM checks the permissions of a file.
func scriptMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has the mode %s, want %s", args[0], got, args[1])
	}
}

// poll waits for a condition. How long does not matter: the bound is for what will never be.
func poll(f func() bool) error {
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("waited a minute in vain")
		}
	}
	return nil
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	if err := poll(f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// A bench is a folder with locks in it, for one test.
type bench struct {
	t   *testing.T
	dir string
	url string
	c   *pawl.Client // looks, and holds nothing
}

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, dir: t.TempDir()}
	b.url = fileURL(filepath.Join(b.dir, "locks.db"))
	var err error
	if b.c, err = pawl.Open(t.Context(), b.url, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeSoon(b.c) })
	return b
}

func (b *bench) entry(name string) pawl.Entry {
	b.t.Helper()
	e, err := b.c.Entry(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) read(name string) string {
	text, err := os.ReadFile(b.file(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(b.file(name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) awaitFile(name string) string {
	b.t.Helper()
	eventually(b.t, name, func() bool { return b.read(name) != "" })
	return b.read(name)
}

func (b *bench) awaitHeld(name string) pawl.Holder {
	b.t.Helper()
	eventually(b.t, name+" is held", func() bool { return len(b.entry(name).Holders) > 0 })
	return b.entry(name).Holders[0]
}

func (b *bench) awaitWaiters(name string, n int) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("%d wait for %s", n, name), func() bool { return len(b.entry(name).Waiters) == n })
}

// A process is a pawl that was started.
type process struct {
	*exec.Cmd
	b      *bench
	stderr strings.Builder
	stdout strings.Builder
	done   chan struct{}
}

// start starts pawl in the bench's folder.
func (b *bench) start(args ...string) *process {
	b.t.Helper()
	return b.startAs("pawl", args...)
}

// startAs starts another command, which will be pawl.
func (b *bench) startAs(name string, args ...string) *process {
	b.t.Helper()
	p := &process{Cmd: exec.Command(name, args...), b: b, done: make(chan struct{})}
	p.Dir = b.dir
	p.Env = append(os.Environ(), "PAWL_URL="+b.url, "HOME="+b.dir)
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.WaitDelay = time.Second // what is left behind may have them open
	if err := p.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.done)
	}()
	b.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
	})
	return p
}

// run is start, and wait for the exit code.
func (b *bench) run(args ...string) (*process, int) {
	b.t.Helper()
	p := b.start(args...)
	return p, p.code()
}

func (p *process) code() int {
	p.b.t.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.b.t.Fatalf("pawl does not end; it said %s", p.stderr.String())
	}
	return p.ProcessState.ExitCode()
}

func (p *process) wantCode(want int) {
	p.b.t.Helper()
	if got := p.code(); got != want {
		p.b.t.Errorf("exit code %d, want %d; it said %s", got, want, p.stderr.String())
	}
}

func (b *bench) signal(p *process, s os.Signal) {
	b.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		b.t.Fatal(err)
	}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
