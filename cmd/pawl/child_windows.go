package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	shellName  = "cmd /C"
	systemHelp = `
COMMAND inherits standard input, output and error, and gets Ctrl-C directly.
While pawl waits for the lock, Ctrl-C ends it. Windows has no other signals, so
--grace has no effect: if the lock is lost, COMMAND and all processes it has
started are ended at once, before anyone else can get the lock. The same happens
if pawl is killed.

When COMMAND ends by itself, its background processes run on without the lock;
let COMMAND wait for them.
`
)

func shellCommand(line string) []string { return []string{"cmd", "/C", line} }

// child is the command, in a job object that ends with pawl.
type child struct {
	process      *os.Process
	job          windows.Handle
	env          []string
	ended        chan ending
	paused       chan syscall.Signal // receives nothing, because Windows has no Ctrl-Z
	ctrlZ        chan os.Signal      // receives nothing
	endRequested bool                // always false: pawl sends no signal, the console sends Ctrl-C to each process

	onUndelivered func(syscall.Signal, error) // called for a signal that did not reach the child; never on Windows
	done          chan struct{}               // closed when the process has ended
}

func startChild(path string, argv, env []string, _ chan os.Signal) (*child, error) {
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	c := &child{process: p, job: job, env: env, ended: make(chan ending, 1), done: make(chan struct{})}
	// Processes that the child has started before this call are not in the job.
	if err := p.WithHandle(func(h uintptr) {
		_ = windows.AssignProcessToJobObject(job, windows.Handle(h)) // fails if the process has ended already
	}); err != nil {
		_ = p.Kill()
		_ = windows.CloseHandle(job)
		return nil, err
	}
	go func() {
		state, err := p.Wait()
		close(c.done)
		if err != nil {
			c.ended <- ending{code: exitOther}
			return
		}
		c.ended <- ending{code: state.ExitCode()}
	}()
	return c, nil
}

// newJob makes a job object. Windows ends its processes when its last handle is closed,
// and so when pawl ends.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	if err := limitJob(job, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE); err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func limitJob(job windows.Handle, flags uint32) error {
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: flags},
	}
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

// pass does nothing: the console has notified the child.
func (c *child) pass(os.Signal) {}

func (c *child) handleStop(syscall.Signal, func() bool) {}

// runCheck runs a line while the child runs, and returns nil if it ends with code 0.
func (c *child) runCheck(ctx context.Context, line string) error {
	argv := shellCommand(line)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // that is what --health is for
	cmd.Env, cmd.Stderr = c.env, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--health: %w", err)
	}
	return nil
}

// stop ends the whole job at once.
func (c *child) stop(func(begun time.Time) time.Time) bool {
	_ = windows.TerminateJobObject(c.job, exitLost)
	_ = c.process.Kill() // in case it is not in the job
	select {
	case <-c.done:
		return true
	case <-time.After(killTimeout):
		return false
	}
}

func (c *child) keySignal() os.Signal { return nil }

// close lets the remaining processes of the job run on.
func (c *child) close() {
	_ = limitJob(c.job, 0)
	_ = windows.CloseHandle(c.job)
}

// catchSignals catches Ctrl-C, and the end of the session.
func catchSignals() chan os.Signal {
	caught := make(chan os.Signal, 64)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	return caught
}

// endGroup does nothing: the console notifies all processes.
func endGroup(os.Signal) {}

// killSelf does nothing: Windows has the exit code only.
func killSelf(os.Signal) {}

func signalNumber(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return int(n)
	}
	return int(syscall.SIGINT)
}

func signalName(s syscall.Signal) string { return s.String() }

func asksToEnd(os.Signal) bool { return true }

func isContinue(os.Signal) bool { return false }

// stopKey does nothing, because Windows has no Ctrl-Z.
type stopKey chan os.Signal

func (stopKey) catch() {}

func (stopKey) stopCatching() {}

func (stopKey) stopPawl() {}

func stopFunc() func(bool) { return nil }

// interpreterOf returns "", because scripts have no #! on Windows.
func interpreterOf(string) string { return "" }

func loaderOf(string) string { return "" }

// awaitNoReader returns false, because Windows does not report the end of a reader. The
// next write fails.
func awaitNoReader() bool { return false }

var errNoReader = errors.New("standard output has no reader")
