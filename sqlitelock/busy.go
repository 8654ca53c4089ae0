package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// A gate is a mutex in whose queue nobody has to stay: a ctx, a deadline and Close end the wait. It is fair,
// for goroutines that send to a channel are served in order.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// try takes the gate if it is free, and nobody queues.
func (g gate) try() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) take() { g <- struct{}{} }
func (g gate) free() { <-g }

// gates are those of the files that are open for writing: the drivers of one file in one process queue at the
// same gate, in order, instead of getting in each other's way as different processes have to.
var gates struct {
	sync.Mutex
	byPath map[string]*sharedGate
}

type sharedGate struct {
	gate
	users int
}

// gateOf returns the gate of a file, until leave.
func gateOf(path string) (g gate, leave func()) {
	gates.Lock()
	defer gates.Unlock()
	s := gates.byPath[path]
	if s == nil {
		s = &sharedGate{gate: newGate()}
		if gates.byPath == nil {
			gates.byPath = map[string]*sharedGate{}
		}
		gates.byPath[path] = s
	}
	s.users++
	return s.gate, func() {
		gates.Lock()
		defer gates.Unlock()
		if s.users--; s.users == 0 {
			delete(gates.byPath, path)
		}
	}
}

// spins is how often a caller looks again, while others run, before it stands in the queue. A step takes some
// microseconds, less than putting a goroutine to sleep and waking it: with 64 at once this doubles what gets
// through. Nobody overtakes who stands in the queue: the gate passes from hand to hand there.
const spins = 100

// enter takes the gate for a caller.
func (t *table) enter(ctx context.Context, g gate) error {
	entered := g.try()
	for n := 0; !entered && n < spins; n++ {
		runtime.Gosched()
		entered = g.try()
	}
	if !entered {
		if err := t.queue(ctx, g); err != nil {
			return err
		}
	}
	select {
	case <-t.closed: // Close waits for the gate, or has passed it
		g.free()
		return driver.ErrClosed
	default:
		return nil
	}
}

var errQueue = errors.New("others of this process wait for it, too")

func (t *table) queue(ctx context.Context, g gate) error {
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	for {
		select {
		case g <- struct{}{}:
			return nil
		case <-t.closed:
			return driver.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if _, bounded := ctx.Deadline(); !bounded {
				return errQueue
			}
		}
	}
}

// retry repeats try while other processes are in the way: at once a few times, since a step takes some
// microseconds, then with growing pauses, whose jitter keeps two processes from meeting for ever. It gives up
// when ctx ends, or after patience if ctx has no deadline.
func (t *table) retry(ctx context.Context, try func() error) error {
	err := try()
	if !isBusy(err) {
		return err
	}
	began := time.Now()
	_, bounded := ctx.Deadline()
	for n := 0; isBusy(err); n++ {
		if ended := t.pause(ctx, n); ended != nil {
			if errors.Is(ended, context.DeadlineExceeded) { // say also what took so long
				ended = &driver.Error{Backend: backend(t.path), Op: "write", Hint: busyHint, Err: fmt.Errorf("%w (%w)", ended, err)}
			}
			return ended
		}
		if !bounded && time.Since(began) > t.patience {
			return err
		}
		err = try()
	}
	return err
}

const (
	atOnce     = 6 // tries that only let other goroutines run in between
	firstPause = 100 * time.Microsecond
	lastPause  = 2 * time.Millisecond
)

// pause waits before the n-th repetition.
func (t *table) pause(ctx context.Context, n int) error {
	if n < atOnce {
		runtime.Gosched()
		return ctx.Err()
	}
	timer := time.NewTimer(backoff.Around(backoff.Doubled(firstPause, n-atOnce, lastPause)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-t.closed:
		return driver.ErrClosed
	}
}
