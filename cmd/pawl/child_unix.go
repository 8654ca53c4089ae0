//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	shellName  = "/bin/sh"
	systemHelp = `
COMMAND inherits standard input, output and error, and runs in a process group
of its own, in the foreground of the terminal if there is one. Pawl passes
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 on to that group. While
pawl waits for the lock, these signals end it.

If the lock is lost, the group gets SIGTERM, and SIGKILL after --grace or
earlier: before anyone else can get the lock. When a signal ends COMMAND, pawl
ends the rest of the group in the same way before it releases the lock. When
COMMAND ends by itself, its background processes run on without the lock; let
COMMAND wait for them.

Pawl cannot stop processes that leave the group, such as daemons and work on
other hosts, nor a COMMAND that changes its user: use sudo pawl, and not pawl
with sudo. It can stop nothing while it is itself suspended by SIGSTOP.
If pawl is killed with SIGKILL, Linux kills COMMAND too, but not the processes
that COMMAND has started, nor a set-user-ID program. On other systems COMMAND
runs on, and the lock expires after --ttl.
`
)

func shellCommand(line string) []string { return []string{shellName, "-c", line} }

// child is the command, as the leader of its process group.
type child struct {
	pid          int // also the number of the group
	ended        chan ending
	paused       chan syscall.Signal // the signal that stopped it
	endRequested bool                // pawl has sent it a signal that asks it to end

	// onUndelivered reports the first signal that could not be sent to the group, for
	// example because the command has changed its user. It may be nil.
	onUndelivered func(s syscall.Signal, err error)

	env      []string
	checking sync.Mutex
	checks   map[int]chan unix.WaitStatus // by pid; each channel has room for the exit status
	done     chan struct{}                // closed when reaped is set

	reaped    atomic.Bool    // set before ended receives its end
	endSignal syscall.Signal // the signal that ended it, or 0; written before reaped is set

	tty     *terminal      // nil if there is none
	ctrlZ   chan os.Signal // Ctrl-Z that reaches pawl and not the child
	signals chan os.Signal // all other signals
}

// ignoresTTOU means that pawl has ignored SIGTTOU for an earlier child. Only the
// goroutine that starts the children uses it.
var ignoresTTOU bool

func startChild(path string, argv, env []string, signals chan os.Signal) (*child, error) {
	if ignoresTTOU { // a child inherits an ignored signal, but not a caught one
		signal.Notify(make(chan os.Signal, 1), unix.SIGTTOU)
	}
	c := &child{
		ended: make(chan ending, 1), paused: make(chan syscall.Signal, 1),
		tty: openTerminal(), ctrlZ: make(chan os.Signal, 1), signals: signals,
		env: env, checks: map[int]chan unix.WaitStatus{}, done: make(chan struct{}),
	}
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if c.tty != nil && c.tty.startsInForeground() {
		attr.Sys.Foreground, attr.Sys.Ctty = true, c.tty.fd
		c.tty.lent = true
	}
	dieWithParent(attr.Sys)

	// When the child's group is not in the foreground, Ctrl-Z would stop pawl as well,
	// and renewals would end. From here on pawl passes Ctrl-Z to the child, and stops
	// itself when the child has stopped.
	c.catchStop()
	signal.Notify(signals, unix.SIGCONT)
	started := make(chan error)
	go c.run(path, argv, attr, started)
	err := <-started
	// Ignore SIGTTOU only now, because a child inherits ignored signals. Pawl can then
	// write to the terminal, and take it back, while another group is in the foreground.
	ignoresTTOU = ignoresTTOU || !signal.Ignored(unix.SIGTTOU)
	signal.Ignore(unix.SIGTTOU)
	if err != nil {
		c.close() // the foreground may be the group of a child that never ran
		return nil, err
	}
	return c, nil
}

// run starts the child, and waits for it, in a thread that ends after the child: on Linux
// the kernel kills the child when the thread that forked it ends.
func (c *child) run(path string, argv []string, attr *syscall.ProcAttr, started chan<- error) {
	runtime.LockOSThread() // never unlocked
	var err error
	c.pid, err = forkExec(path, argv, attr)
	started <- err
	if err != nil {
		return
	}
	for {
		// Wait for any process: as the first process of a container, pawl is also the
		// parent of orphans.
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // impossible: there is a child, and no other waiter
			c.reportEnd(ending{code: exitOther})
			return
		case pid != c.pid:
			if !status.Stopped() {
				c.endCheck(pid, status)
			}
		case status.Stopped():
			select {
			case c.paused <- status.StopSignal():
			default: // the channel has a signal already
			}
		case status.Signaled():
			c.endSignal = status.Signal()
			c.reportEnd(ending{code: exitSignal + int(c.endSignal), bySignal: true})
			return
		case status.Exited():
			c.reportEnd(ending{code: status.ExitStatus()})
			return
		}
	}
}

func (c *child) reportEnd(e ending) {
	c.reaped.Store(true)
	close(c.done)
	c.ended <- e
}

// runCheck runs a shell line in a group of its own, and returns nil if the line ends with
// code 0. It kills the group when ctx or the child ends. It discards the standard output
// of the line.
func (c *child) runCheck(ctx context.Context, line string) error {
	runtime.LockOSThread() // dieWithParent kills the line when this thread ends
	defer runtime.UnlockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{Env: c.env, Files: []uintptr{null.Fd(), null.Fd(), 2}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	dieWithParent(attr.Sys)
	argv := shellCommand(line)
	ended := make(chan unix.WaitStatus, 1)
	c.checking.Lock() // the line may end before it is among c.checks
	if c.reaped.Load() {
		c.checking.Unlock()
		return nil
	}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err == nil {
		c.checks[pid] = ended
	}
	c.checking.Unlock()
	if err != nil {
		return err
	}
	select {
	case status := <-ended:
		switch {
		case status.Signaled():
			return fmt.Errorf("--health was ended by signal %d", status.Signal())
		case status.ExitStatus() != 0:
			return fmt.Errorf("--health ended with code %d", status.ExitStatus())
		}
		return nil
	case <-c.done:
		c.killChecks()
		return nil
	case <-ctx.Done():
		c.killChecks()
		return ctx.Err()
	}
}

// endCheck passes the end of a process to the check that started it.
func (c *child) endCheck(pid int, status unix.WaitStatus) {
	c.checking.Lock()
	defer c.checking.Unlock()
	if ended := c.checks[pid]; ended != nil {
		delete(c.checks, pid)
		ended <- status
	}
}

func (c *child) killChecks() {
	c.checking.Lock()
	defer c.checking.Unlock()
	for pid := range c.checks {
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
}

// pass sends a signal to the group. If the signal may end the group, pass also continues
// the group, because a stopped process handles no signal until it is continued.
func (c *child) pass(s os.Signal) {
	c.send(s)
	switch s {
	case unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP:
		c.signalGroup(unix.SIGCONT)
	}
}

// send sends a signal to the group, and does not continue a stopped group.
func (c *child) send(s os.Signal) {
	if asksToEnd(s) {
		c.endRequested = true
	}
	c.signalGroup(s.(syscall.Signal)) //nolint:forcetypeassert // on these systems all signals are
}

func (c *child) signalGroup(s syscall.Signal) {
	if err := unix.Kill(-c.pid, s); errors.Is(err, unix.EPERM) && c.onUndelivered != nil {
		c.onUndelivered(s, err)
		c.onUndelivered = nil
	}
}

// stop ends the group: with SIGTERM, and with SIGKILL at the time that killAt returns,
// which may become earlier meanwhile. It returns true when no process of the group is
// left, or false when killTimeout has passed after SIGKILL.
func (c *child) stop(killAt func(begun time.Time) time.Time) bool {
	begun := time.Now()
	var killedAt time.Time // when it sent SIGKILL for the first time
	if killAt(begun).After(begun) {
		c.signalGroup(unix.SIGTERM)
		c.signalGroup(unix.SIGCONT) // a stopped process does not get SIGTERM
	}
	pause := time.Millisecond
	for polls := 1; !c.gone(polls%8 == 0); polls++ {
		left := time.Until(killAt(begun))
		if left <= 0 {
			c.signalGroup(unix.SIGKILL) // repeatedly, because a process may just have forked
			if killedAt.IsZero() {
				killedAt = time.Now() // not the due time, because pawl itself may have been stopped
			}
		}
		if !killedAt.IsZero() && time.Since(killedAt) > killTimeout {
			return c.gone(true)
		}
		if left > 0 {
			pause = min(pause+pause/4, left, 20*time.Millisecond)
		} else {
			pause = 2 * time.Millisecond
		}
		time.Sleep(pause)
	}
	return true
}

// gone reports whether no process of the group is left. A dead process belongs to its
// group until its parent, which may be a slow init, has waited for it. With thorough,
// gone ignores dead processes, which costs more.
func (c *child) gone(thorough bool) bool {
	if !c.reaped.Load() {
		return false // even if it is dead: run is about to reap it
	}
	for { // reap orphans of the group, if pawl is the first process of a container
		if pid, err := unix.Wait4(-c.pid, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	if errors.Is(unix.Kill(-c.pid, 0), unix.ESRCH) {
		return true
	}
	if !thorough || !allDead(c.pid) {
		return false
	}
	c.signalGroup(unix.SIGKILL) // kill a process that was forked meanwhile
	return allDead(c.pid)
}

// close takes the terminal back, and stops catching its keys.
func (c *child) close() {
	signal.Stop(c.ctrlZ)
	c.killChecks()
	if c.tty == nil {
		return
	}
	c.tty.takeBack()
	if c.reaped.Load() && c.endSignal != 0 {
		c.tty.restoreModes()
	}
	_ = unix.Close(c.tty.fd)
}

// keySignal returns the signal that ended the child, if a key of the terminal sent it.
func (c *child) keySignal() os.Signal {
	if c.tty != nil && c.tty.lent && (c.endSignal == unix.SIGINT || c.endSignal == unix.SIGQUIT) {
		return c.endSignal
	}
	return nil
}
