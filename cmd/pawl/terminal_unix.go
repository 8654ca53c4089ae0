//go:build unix

package main

import (
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the terminal that controls our session, and what we did with it.
//
// The child's group must be in its foreground to read from it, and to get what Ctrl-C and
// Ctrl-Z send. It is put there at once if its standard input and output are the terminal.
// Otherwise others in our own group may want it, as in `pawl run x -- cat | less`: then
// it gets it when it has stopped for want of it.
type terminal struct {
	fd    int
	modes *term.State
	lent  bool // the foreground is the child's group
}

// openTerminal is nil if there is none.
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

// ours reports whether our group is in the foreground.
func (t *terminal) ours() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// ofChild reports whether the child shall be in the foreground from its start on.
func (t *terminal) ofChild() bool { return term.IsTerminal(0) && term.IsTerminal(1) && t.ours() }

func (t *terminal) lend(group int) {
	t.lent = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) == nil
}

// takeBack puts ourselves there again. SIGTTOU must be ignored: we are in the background.
func (t *terminal) takeBack() {
	if t.lent {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, unix.Getpgrp())
		t.lent = false
	}
}

// repair sets the modes as they were: who was killed had no time to.
func (t *terminal) repair() {
	if t.ours() {
		_ = term.Restore(t.fd, t.modes)
	}
}

// catchStop has SIGTSTP passed on to the child, unless we ignore it.
func (c *child) catchStop() {
	if !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(c.keys, unix.SIGTSTP)
	}
}

// suspend deals with a child that was stopped by s. Without a terminal there is nothing
// to do: somebody stopped it and will continue it, and meanwhile it has the lock. With
// one, it is the shell's turn: so we stop, too. Nobody renews then, so when we go on we
// look at the lease first. If it was lost, the child stays stopped, and the caller kills
// it.
func (c *child) suspend(s syscall.Signal, held func() bool) {
	t := c.tty
	if t == nil {
		return
	}
	asks := s == unix.SIGTTIN || s == unix.SIGTTOU
	wants := asks || t.lent
	// A child that asks for the terminal just gets it, if it is ours to give. We may have
	// given it before: the shell that starts a pipe sets the foreground for each of its
	// parts, and the next part may come later than we did.
	if !asks || !t.ours() {
		t.takeBack()
		c.stopOurselves()
		if !held() {
			return
		}
	}
	if t.ours() && (wants || t.ofChild()) {
		t.lend(c.pid)
	}
	c.kill(unix.SIGCONT)
}

// stopOurselves stops our whole group, as the terminal does: a script that runs us is in
// it, and the shell waits for that. It returns when we are continued.
func (c *child) stopOurselves() {
	if unix.Getpgrp() == sessionID() {
		// The group of the session's first process has nobody who would continue it: the
		// system does not stop it at a key, and nor do we.
		time.Sleep(100 * time.Millisecond)
		return
	}
	signal.Stop(c.keys) // it is still caught, but nobody hears of it: what stops us is the next one
	stopAfter(func() { _ = unix.Kill(0, unix.SIGTSTP) })
	ran := time.After(time.Second)
	for {
		select {
		case s := <-c.signals:
			if s == unix.SIGCONT {
				c.catchStop()
				return
			}
			c.hand(s) // it waits until the group is continued, unless it kills
		case <-ran: // a group without a shell, which no key stops: we must not renew
			stopProcess()
		}
	}
}

func sessionID() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	return sid
}
