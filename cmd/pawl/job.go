package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

// A job is one `pawl run`: claim the lock, start the child, watch both, release. Other
// verbs have a part of it: `pawl acquire` claims, and `pawl elect` watches.
//
// What it sees to, in every order of events: the child does not start without the lock,
// and nothing of its group is alive when another can be granted the name.
type job struct {
	v        *voice
	name     string
	also     []string // the other names that are claimed with it
	path     string
	argv     []string
	grace    time.Duration
	try      bool          // not to wait for the lock
	patience time.Duration // how long to wait for the lock, the opening included; 0 is for ever
	maxHold  time.Duration // how long the command may run; 0 is for ever
	hidden   []string      // variables that the command does not get
	key      string        // of the task, with once
	signals  chan os.Signal
	open     func(context.Context) (*pawl.Client, error)
	acquire  func(context.Context, *pawl.Client) (jobLease, error)

	// succeeded notes that the command has ended with code 0, if that has to be known. It
	// is called under the lease.
	succeeded func(jobLease) error

	toldLost bool                  // it has been said that the lock was lost
	ran      bool                  // the command was started
	child    atomic.Pointer[child] // the command, for --health
}

// jobLease is what a job has: a [pawl.Lease], or those of several names.
type jobLease interface {
	Done() <-chan struct{}
	Err() error
	Release(ctx context.Context) error
}

// releaseNow releases what nothing has run under: --min-hold is for what has run.
func releaseNow(l jobLease) error {
	if one, ok := l.(*pawl.Lease); ok {
		return one.ReleaseNow(context.Background())
	}
	return l.Release(context.Background())
}

func (j *job) run() error {
	client, lease, err := j.claim()
	if client != nil {
		// Close takes back what is on its way: a place in the queue, a grant. What it
		// cannot take back expires.
		defer func() { _ = closeWithin(client, j.goodbye(err)) }()
	}
	if err != nil {
		return err
	}
	end := j.hold(lease)
	if end == nil && j.succeeded != nil {
		if err := j.succeeded(lease); err != nil {
			end = notNoted(err)
		}
	}
	if j.ran {
		err = lease.Release(context.Background())
	} else {
		err = releaseNow(lease)
	}
	if !j.toldLost {
		j.v.warnReleased(err)
	}
	return end
}

// warnReleased says what a release has found, if that has to be known.
func (v *voice) warnReleased(err error) {
	switch {
	case err == nil:
	case errors.Is(err, pawl.ErrLost):
		v.warn("the command has ended, but the lock was lost before: %s", words.Bare(err))
	default:
		v.warn("%s; the name stays held until its lease expires", words.Bare(err))
	}
}

// hold runs the child under the lease, and returns when nothing of it may run any more.
func (j *job) hold(lease jobLease) error {
	select {
	case s := <-j.signals:
		return stoppedBy(s)
	default:
	}
	if err := lease.Err(); err != nil {
		j.toldLost = true
		return &exit{code: exitLost, err: fmt.Errorf("%w, before the command was started", err)}
	}
	c, err := startChild(j.path, j.argv, j.environment(lease), j.signals)
	if err != nil {
		return notStarted(j.argv[0], j.path, err)
	}
	j.ran = true
	defer c.close()
	j.child.Store(c)
	var late <-chan time.Time
	if j.maxHold > 0 {
		late = time.After(j.maxHold)
	}
	for {
		select {
		case <-late:
			return j.tooLong(c, lease)
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
				// A signal is for the group, and its first process may be dead while the
				// others still tidy up. They do it under the lock.
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
func (j *job) lost(c *child, lease jobLease) error {
	err := lease.Err()
	j.toldLost = true
	said := make(chan struct{})
	go func() { // a terminal that was stopped with Ctrl-S would hold us up
		defer close(said)
		j.v.sayLost(err)
	}()
	gone := c.stop(func(begun time.Time) time.Time { return killTime(lease, begun, j.grace) })
	select {
	case <-said:
	case <-time.After(100 * time.Millisecond):
	}
	if !gone {
		return &exit{code: exitLost, err: errStillRunning}
	}
	return &exit{code: exitLost}
}

// tooLong stops the child, which still has the lock.
func (j *job) tooLong(c *child, lease jobLease) error {
	j.v.sayTooLong(j.name, j.maxHold)
	if !c.stop(func(begun time.Time) time.Time { return killTime(lease, begun, j.grace) }) {
		return &exit{code: exitTooLong, err: errStillRunning}
	}
	return &exit{code: exitTooLong}
}

func (v *voice) sayTooLong(name string, after time.Duration) {
	v.say("%q was held for --max-hold, which is %v: stopping the command", name, after)
}

func (v *voice) sayLost(err error) { v.say("%s: stopping the command", words.Bare(err)) }

var errStillRunning = errors.New("SIGKILL was sent to the process group of the command, but some of it is still running; look for it before you run it again")

// killTime is when a group that was asked to stop at begun is killed: after its grace,
// but in any case before another can be granted the name, by a tenth of the time until
// then and 20 ms at least.
func killTime(lease jobLease, begun time.Time, grace time.Duration) time.Time {
	at := begun.Add(grace)
	if lost, ok := errors.AsType[*pawl.LostError](lease.Err()); ok {
		left := lost.Until.Sub(begun)
		if last := begun.Add(left - max(left/10, 20*time.Millisecond)); last.Before(at) {
			at = last
		}
	}
	return at
}
