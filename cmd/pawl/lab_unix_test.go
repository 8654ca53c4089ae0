//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// poll waits until f returns true. It returns an error after hangTime.
func poll(f func() bool) error {
	for end := time.Now().Add(hangTime); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("it did not happen within %v", hangTime)
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

// A lab is a folder with locks in it, for one test.
type lab struct {
	t   *testing.T
	dir string
	url string
	env []string     // of its processes, besides the environment of the test
	c   *pawl.Client // of the test itself
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	return newSerialLab(t)
}

// newSerialLab is newLab without t.Parallel, for a test that loads the machine.
func newSerialLab(t *testing.T) *lab {
	t.Helper()
	b := &lab{t: t, dir: t.TempDir()}
	b.url = fileURL(filepath.Join(b.dir, "locks.db"))
	var err error
	b.c, err = pawl.Open(t.Context(), b.url, patientOptions)
	noError(t, err)
	t.Cleanup(func() { _ = closeSoon(b.c) })
	return b
}

func (b *lab) entry(name string) pawl.Entry {
	b.t.Helper()
	e, err := b.c.Inspect(b.t.Context(), name)
	noError(b.t, err)
	return e
}

func (b *lab) file(name string) string { return filepath.Join(b.dir, name) }

func (b *lab) read(name string) string {
	text, err := os.ReadFile(b.file(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (b *lab) write(name, text string) {
	b.t.Helper()
	noError(b.t, os.WriteFile(b.file(name), []byte(text), 0o600))
}

func (b *lab) awaitFile(name string) string {
	b.t.Helper()
	eventually(b.t, name, func() bool { return b.read(name) != "" })
	return b.read(name)
}

func (b *lab) awaitHeld(name string) pawl.Holder {
	b.t.Helper()
	eventually(b.t, name+" is held", func() bool { return len(b.entry(name).Holders) > 0 })
	return b.entry(name).Holders[0]
}

func (b *lab) awaitWaiters(name string, n int) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("%d wait for %s", n, name), func() bool { return len(b.entry(name).Waiters) == n })
}

// An outputFile is the output of a process. It is a file, not a pipe, because Wait would
// wait for background processes that keep a pipe open.
type outputFile struct{ file *os.File }

func (p *outputFile) String() string {
	text, err := os.ReadFile(p.file.Name())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (b *lab) newOutputFile(name string) outputFile {
	b.t.Helper()
	file, err := os.Create(filepath.Join(b.t.TempDir(), name))
	noError(b.t, err)
	b.t.Cleanup(func() { _ = file.Close() })
	return outputFile{file}
}

// A process is a running or finished pawl.
type process struct {
	*exec.Cmd
	b       *lab
	stderr  outputFile
	stdout  outputFile
	waitErr error // of Wait; written before done is closed
	done    chan struct{}
}

// start starts pawl in the lab's folder.
func (b *lab) start(args ...string) *process {
	b.t.Helper()
	return b.startAs("pawl", args...)
}

// startAs starts another command, which usually runs pawl.
func (b *lab) startAs(name string, args ...string) *process {
	b.t.Helper()
	return b.startWith(func(*exec.Cmd) {}, name, args...)
}

// startWith is startAs, and calls prepare before the start of the command.
func (b *lab) startWith(prepare func(*exec.Cmd), name string, args ...string) *process {
	b.t.Helper()
	p := &process{
		Cmd: exec.Command(name, args...), b: b, done: make(chan struct{}),
		stdout: b.newOutputFile("stdout"), stderr: b.newOutputFile("stderr"),
	}
	p.Dir = b.dir
	p.Env = append(os.Environ(), "PAWL_URL="+b.url, "HOME="+b.dir)
	p.Env = append(p.Env, b.env...)
	p.Stdout, p.Stderr = p.stdout.file, p.stderr.file
	prepare(p.Cmd)
	noError(b.t, p.Start())
	go func() {
		p.waitErr = p.Wait()
		close(p.done)
	}()
	b.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
	})
	return p
}

// run starts pawl, and waits for its exit code.
func (b *lab) run(args ...string) (*process, int) {
	b.t.Helper()
	p := b.start(args...)
	return p, p.code()
}

// await waits until the command of a running pawl has written this file.
func (p *process) await(name string) {
	p.b.t.Helper()
	eventually(p.b.t, name, func() bool {
		select {
		case <-p.done:
			p.b.t.Fatalf("pawl ended before there was a file %q: code %d; it printed %s", name, p.code(), p.stderr.String())
		default:
		}
		return p.b.read(name) != ""
	})
}

func (p *process) code() int {
	p.b.t.Helper()
	select {
	case <-p.done:
	case <-time.After(hangTime):
		p.b.t.Fatalf("pawl does not end; it printed %s", p.stderr.String())
	}
	if p.ProcessState == nil {
		p.b.t.Fatalf("Wait: %v; it printed %s", p.waitErr, p.stderr.String())
	}
	return p.ProcessState.ExitCode()
}

func (p *process) wantCode(want int) {
	p.b.t.Helper()
	if got := p.code(); got != want {
		p.b.t.Errorf("exit code %d, want %d; it printed %s", got, want, p.stderr.String())
	}
}

func (b *lab) signal(p *process, s os.Signal) {
	b.t.Helper()
	noError(b.t, p.Process.Signal(s))
}

// group returns the number of a process group, which its leader writes to a file "group".
func (b *lab) group() int {
	b.t.Helper()
	pid, err := strconv.Atoi(b.awaitFile("group"))
	noError(b.t, err)
	return pid
}

func (b *lab) wantGone(group int) {
	b.t.Helper()
	if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) && !allDead(group) {
		b.t.Errorf("the group %d still has a process: %v", group, err)
	}
}
