// Package pawltest is for tests of code that uses Pawl. It has a backend in memory, and
// an operator's hand on it: the backend fails, hangs, is slow, loses its data, or its
// clock jumps; a lease is broken, or expires. The locks are real ones.
//
//	synctest.Test(t, func(t *testing.T) {
//		backend := pawltest.New(t)
//		done := start(backend.Client(nil)) // the code that is tested
//		time.Sleep(time.Minute)
//		backend.Break("nightly")
//		if err := <-done; !errors.Is(err, pawl.ErrLost) {
//			t.Error(err)
//		}
//	})
//
// In a bubble of testing/synctest time is virtual: leases are renewed and expire, and no
// test waits. Outside of one all of it works too, and takes its time. Make the backend in
// the bubble in which it is used.
package pawltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// TB is what a backend wants of a test: a *testing.T, *testing.B or *testing.F has it.
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Backend is a backend in memory, for one test. Many goroutines may use it.
type Backend struct {
	t      TB
	memory *memlock.Memory
	look   driver.Driver // the operator's own, which no fault concerns
	born   time.Time
	ahead  atomic.Int64 // how far the backend's clock has jumped

	mu      sync.Mutex // protects all below
	clients map[*pawl.Client]*process
	all     fault // of clients that are made later, too
}

// New returns a backend without locks.
func New(t TB) *Backend {
	t.Helper()
	b := &Backend{t: t, born: time.Now(), clients: map[*pawl.Client]*process{}}
	b.memory = memlock.NewMemory(&memlock.Options{Now: b.now})
	b.look = b.memory.Driver()
	t.Cleanup(func() { _ = b.look.Close() })
	return b
}

// patience is how long what a test left behind may take to end: a request that was not
// answered, and may still be granted, ends within 3.25 s.
const patience = 5 * time.Second

// Client returns a client, as another process would have it. o may be nil. At its end the
// test fails if the client still holds a lease, still waits for one, or still runs a
// function of Do; then the client is closed.
func (b *Backend) Client(o *pawl.Options) *pawl.Client {
	b.t.Helper()
	p := &process{Driver: b.memory.Driver(), lookup: map[driver.Token]string{}}
	b.mu.Lock()
	p.set(b.all)
	b.mu.Unlock()
	c, err := pawl.New(p, o)
	if err != nil {
		b.t.Fatalf("pawltest: %v", err)
	}
	b.mu.Lock()
	b.clients[c] = p
	b.mu.Unlock()
	b.t.Cleanup(func() { b.end(c) })
	return c
}

// end closes a client, and says what the test left behind.
func (b *Backend) end(c *pawl.Client) {
	b.Restore()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before := b.shown()
	if err := c.Shutdown(ctx); err != nil {
		b.t.Errorf("pawltest: the test left something behind: %v\n%s", err, before)
	}
}

// shown are all names, for messages.
func (b *Backend) shown() (lines string) {
	for e, err := range b.look.(driver.Lister).List(context.Background(), "") { //nolint:forcetypeassert // it is memlock's
		if err == nil {
			lines += describe(&e) + "\n"
		}
	}
	return lines
}

func describe(e *driver.Entry) string {
	switch {
	case len(e.Holders) > 0:
		s := fmt.Sprintf("%q is held", e.Name)
		for _, h := range e.Holders {
			s += fmt.Sprintf(" by %v (fence %d)", h.Owner, h.Fence)
		}
		return fmt.Sprintf("%s, %d wait", s, len(e.Waiters))
	case e.ClosedFor > 0:
		return fmt.Sprintf("%q is closed for %v, %d wait", e.Name, e.ClosedFor, len(e.Waiters))
	}
	return fmt.Sprintf("%q is free, %d wait", e.Name, len(e.Waiters))
}

// now is the backend's clock.
func (b *Backend) now() time.Time {
	return b.born.Round(0).Add(time.Since(b.born) + time.Duration(b.ahead.Load()))
}
