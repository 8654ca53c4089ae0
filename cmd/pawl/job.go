package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/pawl-go/pawl"
)

// A job is one `pawl run`: claim the lock, start the child, watch both, release.
//
// What it sees to, in every order of events: the child does not start without the lock, and nothing of its
// group is alive when another can be granted the name.
type job struct {
	v        *voice
	name     string
	path     string
	argv     []string
	grace    time.Duration
	patience time.Duration // how long to wait for the lock; 0 is for ever
	signals  chan os.Signal
	open     func(context.Context) (*pawl.Client, error)
	acquire  func(context.Context, *pawl.Client) (*pawl.Lease, error)

	toldLost bool // it has been said that the lock was lost
}

// errNotAcquired marks the failures whose exit code is -E's.
var errNotAcquired = errors.New("not acquired")

func (j *job) run() error {
	client, lease, err := j.claim()
	if client != nil {
		// Close takes back what is on its way: a place in the queue, a grant. What it cannot take back expires.
		defer func() { _ = closeSoon(client) }()
	}
	if err != nil {
		return err
	}
	end := j.hold(lease)
	switch err := lease.Release(context.Background()); {
	case err == nil:
	case j.toldLost:
	case errors.Is(err, pawl.ErrLost):
		j.v.warn("the command has ended, but not under the lock to its end: %s", bare(err))
	default:
		j.v.warn("%s; the name stays held until its lease expires", bare(err))
	}
	return end
}

// claim waits for the lock. A signal ends the wait, and is never lost: one that comes in the instant of the
// grant stays in j.signals, for hold.
func (j *job) claim() (*pawl.Client, *pawl.Lease, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type answer struct {
		client *pawl.Client
		lease  *pawl.Lease
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		if a.client, a.err = j.open(ctx); a.err == nil {
			a.lease, a.err = j.wait(ctx, a.client)
		}
		got <- a
	}()

	select {
	case a := <-got:
		return a.client, a.lease, j.refused(a.err)
	case s := <-j.signals:
		cancel()
		select {
		case a := <-got:
			if a.lease != nil {
				j.letGo(a.lease)
			}
			return a.client, nil, stoppedBy(s)
		case s := <-j.signals: // the second one: at once, whatever is left behind until it expires
			return nil, nil, stoppedBy(s)
		}
	}
}

func (j *job) wait(ctx context.Context, c *pawl.Client) (*pawl.Lease, error) {
	if j.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.patience)
		defer cancel()
	}
	return j.acquire(ctx, c)
}

// refused makes the error of a claim ours.
func (j *job) refused(err error) error {
	held, isHeld := errors.AsType[*pawl.HeldError](err)
	switch {
	case err == nil:
		return nil
	case codeOf(err) != exitHeld:
		return &exit{code: codeOf(err), err: err}
	case isHeld && j.patience == 0:
		err = errors.New(bare(held))
	case isHeld:
		err = fmt.Errorf("gave up after %v: %s", j.patience, bare(held))
	default:
		err = fmt.Errorf("gave up on %q after %v, before the backend answered", j.name, j.patience)
	}
	return &exit{code: exitHeld, err: notAcquiredError{err}}
}

// notAcquiredError Is errNotAcquired, and reads as its cause.
type notAcquiredError struct{ error }

func (notAcquiredError) Is(target error) bool { return target == errNotAcquired }

// letGo releases a lease under which nothing has run.
func (j *job) letGo(lease *pawl.Lease) {
	if err := lease.Release(context.Background()); err != nil && !errors.Is(err, pawl.ErrLost) {
		j.v.warn("%s; the name stays held until its lease expires", bare(err))
	}
}

// hold runs the child under the lease, and returns when nothing of it may run any more.
func (j *job) hold(lease *pawl.Lease) error {
	select {
	case s := <-j.signals:
		return stoppedBy(s)
	default:
	}
	if err := lease.Err(); err != nil {
		j.toldLost = true
		return &exit{code: exitLost, err: fmt.Errorf("%w, before the command was started", err)}
	}
	c, err := startChild(j.path, j.argv, environment(lease), j.signals)
	if err != nil {
		return notStarted(j.argv[0], err)
	}
	defer c.close()
	for {
		select {
		case <-lease.Done():
			return j.lost(c, lease)
		case s := <-j.signals:
			if lease.Err() == nil { // else SIGCONT might continue a child that must not go on
				c.pass(s)
			}
		case s := <-c.keys:
			c.pass(s)
		case s := <-c.paused:
			c.suspend(s, func() bool { return lease.Err() == nil })
		case end := <-c.ended:
			if end.cut || c.toldToEnd {
				// A signal is for the group, and its first process may be dead while the others still tidy up. They
				// do it under the lock.
				c.stop(func(begun time.Time) time.Time { return killTime(lease, begun, j.grace) })
			}
			if end.code == 0 {
				return nil
			}
			return &exit{code: end.code, key: c.key()}
		}
	}
}

// lost stops the child, before anybody else can be granted the name.
func (j *job) lost(c *child, lease *pawl.Lease) error {
	err := lease.Err()
	j.toldLost = true
	said := make(chan struct{})
	go func() { // a terminal that was stopped with Ctrl-S would hold us up
		defer close(said)
		j.v.say("%s: stopping the command", bare(err))
	}()
	gone := c.stop(func(begun time.Time) time.Time { return killTime(lease, begun, j.grace) })
	select {
	case <-said:
	case <-time.After(100 * time.Millisecond):
	}
	if !gone {
		return &exit{code: exitLost, err: errors.New("SIGKILL was sent to the command's process group, but something of it is still there")}
	}
	return &exit{code: exitLost}
}

// killTime is when a group that was asked to stop at begun is killed: after its grace, but in any case before
// another can be granted the name, by a tenth of the time until then and 20 ms at least.
func killTime(lease *pawl.Lease, begun time.Time, grace time.Duration) time.Time {
	at := begun.Add(grace)
	if lost, ok := errors.AsType[*pawl.LostError](lease.Err()); ok {
		left := lost.Until.Sub(begun)
		if last := begun.Add(left - max(left/10, 20*time.Millisecond)); last.Before(at) {
			at = last
		}
	}
	return at
}

// findCommand is where the command is, as the shell would find it.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) { // who has a dot in PATH wants it
		err = nil
	}
	if err != nil {
		return "", notStarted(name, err)
	}
	return path, nil
}

// notStarted is the exit of a command that could not be run, with the codes that shells use.
func notStarted(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exit{code: exitNotFound, err: fmt.Errorf("%s: command not found", plain(name))}
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return &exit{code: exitNotExecutable, err: fmt.Errorf("%s: cannot be executed: %w", plain(name), err)}
}
