package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

// A job is one `pawl run` or `once`: it claims the lock, starts the child, watches both,
// and releases. `pawl acquire` and `pawl elect` use a part of it.
//
// The child never starts without the lock. After a signal, or a loss that leaves time to
// stop it, no process of its group is alive when another client can be granted the name.
// But if the child ends by itself, its background processes run on without the lock.
type job struct {
	v       *output
	name    string
	url     string
	others  []string // the other names that are claimed with it
	path    string
	argv    []string
	grace   time.Duration
	noWait  bool          // do not wait for the lock
	maxWait time.Duration // the limit for the opening and the lock together; 0 means no limit
	maxHold time.Duration // the longest run of the command; 0 means no limit
	hidden  []string      // variables that the command does not get
	taskKey string        // the key of the task, for once
	signals chan os.Signal
	open    func(context.Context) (*pawl.Client, error)
	acquire func(context.Context, *pawl.Client) (jobLease, error)

	// storeDone stores that the command has ended with code 0. It is called under the
	// lease; it may be nil.
	storeDone func(jobLease) error

	reportedLost bool                  // pawl has reported that the lock was lost
	started      bool                  // the command was started
	endBy        time.Time             // when pawl must end; zero until a signal has asked pawl to end
	stopsWaiting bool                  // pawl waits no longer, because of a second signal, or because endBy has passed
	child        atomic.Pointer[child] // the command, for --health
}

// jobLease is the lease of a job: a [pawl.Lease], or the lease of several names.
type jobLease interface {
	Done() <-chan struct{}
	Err() error
	Release(ctx context.Context) error
	ReleaseUnused(ctx context.Context) error
}

func (j *job) run() error {
	client, lease, err := j.claim()
	if err != nil {
		j.releaseAndClose(client, nil, j.closeTimeout())
		return err
	}
	end := j.hold(lease)
	if end == nil && j.storeDone != nil {
		end = j.recordDone(lease)
	}
	j.releaseAndClose(client, lease, releaseTimeout)
	return end
}

// warnReleased warns if a release has failed, or has found the lock lost.
func (v *output) warnReleased(err error) {
	switch {
	case err == nil:
	case errors.Is(err, pawl.ErrLost):
		v.warn("the command has ended, but the lock was lost before: %s", words.ErrorText(err))
	default:
		v.warn("%s; the name stays held until its lease expires", words.ErrorText(err))
	}
}

// hold runs the child under the lease, and returns when the child has ended. If a signal
// or pawl has ended it, hold first stops the rest of its group.
func (j *job) hold(lease jobLease) error {
	j.v.flush(startFlushTimeout)
	select {
	case s := <-j.signals:
		return stoppedBy(s)
	default:
	}
	if err := lease.Err(); err != nil {
		j.reportedLost = true
		return &exit{code: exitLost, err: fmt.Errorf("%w, before the command was started", err)}
	}
	c, err := startChild(j.path, j.argv, j.environment(lease), j.signals)
	if err != nil {
		return notStarted(j.argv[0], j.path, err)
	}
	j.started = true
	defer c.close()
	defer func() {
		if c.endRequested {
			j.startEndTimeout()
		}
	}()
	c.onUndelivered = j.v.warnUndelivered
	j.child.Store(c)
	var maxHoldOver <-chan time.Time
	if j.maxHold > 0 {
		maxHoldOver = time.After(j.maxHold)
	}
	for {
		select {
		case <-maxHoldOver:
			j.v.sayTooLong(j.name, j.maxHold)
			return j.stop(c, lease, exitTooLong)
		case <-lease.Done():
			j.reportedLost = true
			j.v.sayLost(lease.Err())
			return j.stop(c, lease, exitLost)
		case s := <-j.signals:
			if lease.Err() == nil { // not after a loss, because SIGCONT would continue the child
				c.pass(s)
			}
		case s := <-c.ctrlZ:
			c.pass(s)
		case s := <-c.paused:
			c.handleStop(s, func() bool { return lease.Err() == nil })
		case end := <-c.ended:
			if end.bySignal || c.endRequested {
				// The signal went to the group. Its first process may have ended while
				// the others still run. So wait for the others before the release.
				_ = j.stop(c, lease, 0)
			}
			if end.code == 0 {
				return nil
			}
			return &exit{code: end.code, keySignal: c.keySignal()}
		}
	}
}

// stop stops the child before another client can be granted the name. It returns the exit
// error of pawl.
func (j *job) stop(c *child, lease jobLease, code int) error {
	if !c.stop(func(begun time.Time) time.Time { return killTime(lease, begun, j.grace) }) {
		return &exit{code: code, err: errStillRunning}
	}
	return &exit{code: code}
}

func (v *output) sayTooLong(name string, after time.Duration) {
	v.say("%q was held for --max-hold, which is %v: stopping the command", name, after)
}

func (v *output) warnUndelivered(s syscall.Signal, err error) {
	v.warn("%s did not reach the command: %v; if it changes its user, start pawl as that user: sudo pawl, not pawl with sudo", signalName(s), err)
}

func (v *output) sayLost(err error) { v.say("%s: stopping the command", words.ErrorText(err)) }

var errStillRunning = errors.New("a process of the command is still running: it outlived SIGKILL, or pawl may not signal it; look for that process before you run the command again")

// killTime returns the time at which to kill a group that was asked to stop at begun:
// after its grace. After a loss of the lock, the kill may come earlier: it leaves a tenth
// of the time until another client can be granted the name, and at least minReserve. The
// margin of the lease has room for the grace and for that; see [reserve].
func killTime(lease jobLease, begun time.Time, grace time.Duration) time.Time {
	at := begun.Add(grace)
	if lost, ok := errors.AsType[*pawl.LostError](lease.Err()); ok {
		left := lost.StopBy.Sub(begun)
		if last := begun.Add(left - max(left/10, minReserve)); last.Before(at) {
			at = last
		}
	}
	return at
}

// These variables describe the lock under which a command runs.
const (
	nameVariable   = "PAWL_NAME"
	fenceVariable  = "PAWL_FENCE"
	keyVariable    = "PAWL_KEY"
	fencesVariable = "PAWL_FENCES" // with several names: a line for each, its fence first
)

// environment returns the environment of the child: pawl's own without the hidden
// variables, plus the locks under which the child runs.
func (j *job) environment(l jobLease) []string {
	hidden := append([]string{nameVariable, fenceVariable, fencesVariable, keyVariable}, j.hidden...)
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.Contains(hidden, key)
	})
	if j.taskKey != "" {
		env = append(env, keyVariable+"="+j.taskKey)
	}
	var fence uint64
	switch l := l.(type) {
	case *pawl.Lease:
		fence = l.Fence()
	case *pawl.GroupLease:
		fence = l.Fence(j.name)
		lines := fmt.Sprintf("%s=%d %s", fencesVariable, fence, j.name)
		for _, name := range j.others {
			lines += fmt.Sprintf("\n%d %s", l.Fence(name), name)
		}
		env = append(env, lines)
	}
	return append(env, nameVariable+"="+j.name, fmt.Sprintf("%s=%d", fenceVariable, fence))
}

// parentsFences returns the fences, by name, of the locks under which another pawl runs
// this one.
func parentsFences() map[string]uint64 {
	fences := map[string]uint64{}
	lines := os.Getenv(fencesVariable) + "\n" + os.Getenv(fenceVariable) + " " + os.Getenv(nameVariable)
	for line := range strings.SplitSeq(lines, "\n") {
		fence, name, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseUint(fence, 10, 64); err == nil {
			fences[name] = n
		}
	}
	return fences
}

// A child is the command that runs under the lock, and its process group. child_unix.go
// and child_windows.go implement it, both with these methods:
//
//	startChild(path, argv, env, signals)  starts it, in a group of its own
//	pass(s)                               sends a signal to the group
//	handleStop(s, held)                   handles its stop, for example by Ctrl-Z
//	runCheck(ctx, line)                   runs a shell line beside it, and returns its error
//	stop(killAt)                          ends the group, and reports whether it is gone
//	keySignal()                           returns the signal of a key that ended it, or nil
//	close()                               releases the terminal and other resources
//
// and with the channels ended, which receives its end once, paused and ctrlZ.

type ending struct {
	code     int  // the exit code, 128 + n after signal n
	bySignal bool // a signal ended it
}

// killTimeout is the time for which pawl waits for the end of a group after SIGKILL. Then
// it reports that the group has not ended, and goes on.
const killTimeout = 2 * time.Second
