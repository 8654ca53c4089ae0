//go:build unix

package main

import (
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal of pawl's session.
//
// The child's group must be in the foreground to read from the terminal, and to get the
// signals of Ctrl-C and Ctrl-Z. Pawl puts it there at once if pawl's standard input and
// output are the terminal. Otherwise another process of pawl's own group may need the
// terminal, as in `pawl run x -- cat | less`. Then the child gets the terminal when
// it needs one: the system stops a background process that uses its terminal.
type terminal struct {
	fd    int
	modes *term.State
	lent  bool // the child's group is in the foreground
}

// openTerminal returns nil if there is no terminal.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	modes, err := term.GetState(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return &terminal{fd: fd, modes: modes}
}

// inForeground reports whether pawl's group is in the foreground.
func (t *terminal) inForeground() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// startsInForeground reports whether the child starts in the foreground.
func (t *terminal) startsInForeground() bool {
	return term.IsTerminal(0) && term.IsTerminal(1) && t.inForeground()
}

func (t *terminal) lend(group int) {
	t.lent = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil
}

// takeBack puts pawl's group in the foreground. Pawl must ignore SIGTTOU, because it is
// in the background.
func (t *terminal) takeBack() {
	if t.lent {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, unix.Getpgrp())
		t.lent = false
	}
}

// restoreModes restores the modes of the terminal, because a killed child cannot do so.
func (t *terminal) restoreModes() {
	if t.inForeground() {
		_ = term.Restore(t.fd, t.modes)
	}
}

// catchStop makes pawl catch SIGTSTP, to pass it on to the child, unless pawl ignores it.
func (c *child) catchStop() {
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(c.ctrlZ, unix.SIGTSTP)
	}
}

// handleStop handles the stop of the child by s. Without a terminal it does nothing,
// because another process has stopped the child and will continue it; meanwhile the child
// keeps the lock. With a terminal, the shell expects pawl to stop, so pawl stops, too. A
// stopped pawl does not renew, so it checks the lease when it is continued. If the lease
// is lost, the child stays stopped, and the caller kills it.
func (c *child) handleStop(s syscall.Signal, held func() bool) {
	t := c.tty
	if t == nil {
		return
	}
	wantsTerminal := s == unix.SIGTTIN || s == unix.SIGTTOU
	lendAgain := wantsTerminal || t.lent
	// Pawl stops with its child, unless the child asks for the terminal and pawl's group
	// has it. Pawl may have lent it before, and a shell may have taken it back: a shell
	// that starts a pipe sets the foreground for each part, maybe after pawl has started.
	if !wantsTerminal || !t.inForeground() {
		t.takeBack()
		c.stopOwnGroup()
		if !held() {
			return
		}
	}
	if t.inForeground() && (lendAgain || t.startsInForeground()) {
		t.lend(c.pid)
	}
	c.signalGroup(unix.SIGCONT)
}

// stopOwnGroup stops pawl's whole group, as the terminal does, because the shell may
// wait for a script of the group. It returns when pawl is continued.
func (c *child) stopOwnGroup() {
	if unix.Getpgrp() == sessionID() {
		// No shell would continue the group of the session's first process. A key does
		// not stop it, so pawl does not stop it, either.
		time.Sleep(100 * time.Millisecond)
		return
	}
	signal.Stop(c.ctrlZ) // Go's handler stays, so the kill stops only the others; stopAfter then stops pawl
	stopAfter(func() { _ = unix.Kill(0, unix.SIGTSTP) })
	for pauses := 0; ; {
		select {
		case s := <-c.signals:
			if s == unix.SIGCONT {
				c.catchStop()
				return
			}
			c.send(s) // the group receives s when it is continued
		case <-time.After(50 * time.Millisecond):
			// The system does not stop a group without a shell. So stop pawl alone: it
			// must not renew. If the machine stands still for 1 s, a single pause of 1 s
			// ends before the SIGCONT has arrived. So there are 20 short pauses.
			if pauses++; pauses == 20 {
				stopProcess()
			}
		}
	}
}

func sessionID() int {
	sid, _ := unix.Getsid(0) // it fails for other processes only
	return sid
}
