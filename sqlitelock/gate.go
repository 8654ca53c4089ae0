package sqlitelock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A gate is a mutex whose Lock can be cancelled, see sharedConn.queue. It is fair,
// because a channel serves its senders in order.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// try takes the gate if it is free and no caller queues for it.
func (g gate) try() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) free() { <-g }

// writing has the gates of the files that are open for writing. The drivers of one file
// in one process queue at the same gate, in order, instead of colliding as different
// processes do.
var writing gates

type gates struct {
	mu     sync.Mutex
	byPath map[string]gate
	users  map[string]int
}

// join returns the gate of a file; leave ends its use.
func (gs *gates) join(path string) (g gate, leave func()) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.byPath == nil {
		gs.byPath, gs.users = map[string]gate{}, map[string]int{}
	}
	if gs.users[path]++; gs.users[path] == 1 {
		gs.byPath[path] = newGate()
	}
	return gs.byPath[path], func() { gs.leave(path) }
}

func (gs *gates) leave(path string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if gs.users[path]--; gs.users[path] == 0 {
		delete(gs.byPath, path)
		delete(gs.users, path)
	}
}

// A sharedConn shares one connection to the file: enter gives the connection to one
// goroutine at a time, until it calls leave.
type sharedConn[C connection] struct {
	gate   gate
	closed <-chan struct{} // closed by Close of the driver
	conn   C               // only the goroutine that has the gate uses it
}

// A connection is a *writer or a *reader.
type connection interface {
	comparable
	close() error
}

// spinTries is the number of times that a caller tries again, while other goroutines run,
// before it queues. A step takes some microseconds, less than putting a goroutine to
// sleep and waking it. With 64 callers at once, spinning doubles the throughput. No such
// caller overtakes the queue, because the gate passes directly to the first caller in it.
const spinTries = 100

// enter waits for the gate, and returns the connection. It gives up when ctx ends, or
// after patience if ctx has no deadline.
func (d *sharedConn[C]) enter(ctx context.Context, patience time.Duration) (c C, err error) {
	entered := d.gate.try()
	for n := 0; !entered && n < spinTries; n++ {
		runtime.Gosched()
		entered = d.gate.try()
	}
	if !entered {
		if err := d.queue(ctx, patience); err != nil {
			return c, err
		}
	}
	select {
	case <-d.closed: // Close waits for the gate, or has already had it
		d.gate.free()
		return c, driver.ErrClosed
	default:
		return d.conn, nil
	}
}

// leave gives the connection back.
func (d *sharedConn[C]) leave() { d.gate.free() }

var errQueue = errors.New("others of this process wait for it, too")

func (d *sharedConn[C]) queue(ctx context.Context, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case d.gate <- struct{}{}:
			return nil
		case <-d.closed:
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

// drain waits until the last goroutine has left. The driver is closed, so no other
// goroutine enters.
func (d *sharedConn[C]) drain() {
	d.gate <- struct{}{}
	<-d.gate
}

// open opens the connection, before the first caller enters.
func (d *sharedConn[C]) open(connect func(path string) (C, error), path string) (c C, err error) {
	d.conn, err = connect(path)
	return d.conn, err
}

// close closes the connection, if there is one. Call it before the first enter, or after
// drain.
func (d *sharedConn[C]) close() error {
	var none C
	c := d.conn
	if d.conn = none; c == none {
		return nil
	}
	return c.close()
}
