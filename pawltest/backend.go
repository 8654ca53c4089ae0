// Package pawltest is for tests of code that uses Pawl. It has a backend in memory, with
// real locks, whose faults the test controls. In this example the leader dies, and the
// next instance leads after the TTL of 30 s:
//
//	synctest.Test(t, func(t *testing.T) {
//		backend := pawltest.New(t)
//		first, second := backend.Client(nil), backend.Client(nil)
//		a, b := first.Election("leader"), second.Election("leader")
//		go a.Run(t.Context(), lead) // lead is the code that is tested
//		synctest.Wait()             // now a leads
//		go b.Run(t.Context(), lead)
//		synctest.Wait() // now b waits
//		backend.Hang(first)
//		time.Sleep(31 * time.Second)
//		if err := b.Status(); err != nil {
//			t.Error("b does not lead:", err)
//		}
//	})
//
// In a bubble of testing/synctest time is virtual: leases are renewed and expire, and no
// test waits. Make the backend in the bubble in which it is used. Call synctest.Wait
// before an Assert method and before a fault, so that all other goroutines are blocked.
// Outside of a bubble everything works, too, in real time.
//
// # Which method causes which fault?
//
//   - A process is killed: [Backend.Hang], with its client. The name goes to the next in
//     the queue after the TTL. Unlike in a killed process, the client's code runs on.
//   - A process is paused: [Backend.Expire], with the name. The name goes to the next in
//     the queue at once, and the holder detects the loss later.
//   - The network is cut: Hang. The server refuses requests: [Backend.Fail].
//   - The network is slow: [Backend.Delay]. The backend acts at once, and the client
//     may give up before the answer.
//   - An operator breaks a lease: [Backend.Break].
//   - The backend loses its data: [Backend.Forget]. Its clock jumps: [Backend.Jump].
package pawltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// TB has the methods of testing.TB that a backend uses. A *testing.T, *testing.B or
// *testing.F is one.
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Backend is a backend in memory, for one test. Many goroutines may use it.
type Backend struct {
	t           TB
	memory      *memlock.Memory
	driver      engine.Driver // the operator's own driver, which has no faults
	startTime   time.Time
	clockOffset atomic.Int64 // how far the backend's clock has jumped

	mu           sync.Mutex // protects all below
	clients      map[*pawl.Client]*process
	defaultFault fault // the fault of clients that are made later
}

// New returns a backend without locks. It ends with the test.
func New(t TB) *Backend {
	t.Helper()
	b := &Backend{t: t, startTime: time.Now(), clients: map[*pawl.Client]*process{}}
	b.memory = memlock.NewMemory(&memlock.Options{Now: b.now})
	b.driver = engine.Full(b.memory.Driver())
	t.Cleanup(func() { _ = b.driver.Close() })
	return b
}

// endTimeout is the time in which all that a test began must end. It is longer than
// 3.25 s, because the backend may grant an unanswered request that late.
const endTimeout = 5 * time.Second

// Client returns a new client, which acts as another process. o may be nil. When the test
// ends, the backend calls Restore, and then [pawl.Client.Shutdown], so a leader resigns.
// The test fails if a part of the client has not ended by itself 5 s later: a goroutine
// that waits in Lock, Do, Election.Run, Watch or WaitUntilFree, a lease, or a function of
// Do or Election.Run. A call with t.Context() ends by itself. The test may close the
// client earlier, even during a fault.
func (b *Backend) Client(o *pawl.Options) *pawl.Client {
	b.t.Helper()
	p := newProcess(engine.Full(b.memory.Driver()))
	c, err := pawl.New(p, o)
	if err != nil {
		b.t.Fatalf("pawltest: %v", err)
	}
	b.mu.Lock()
	p.setFault(b.defaultFault) // New has sent no request yet
	b.clients[c] = p
	b.mu.Unlock()
	b.t.Cleanup(func() { b.endClient(c, p) })
	return c
}

// endClient closes a client, and reports everything that the test left behind.
func (b *Backend) endClient(c *pawl.Client, p *process) {
	b.Restore()
	closeErr := error(nil) // the error of the test's own Close, which a fault may have caused
	if p.isClosed() {
		closeErr = c.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	for p.blocked() != "" && backoff.Wait(ctx, 10*time.Millisecond) == nil {
	}
	blocked, entries := p.blocked(), b.describeAll()
	if blocked != "" {
		ctx, cancel = context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
	}
	err := c.Shutdown(ctx)
	if closeErr != nil && err != nil && err.Error() == closeErr.Error() {
		err = nil
	}
	switch {
	case blocked != "":
		b.t.Errorf("pawltest: the test left something behind: %s\n%s", blocked, entries)
	case err != nil:
		b.t.Errorf("pawltest: the test left something behind: %v\n%s", err, entries)
	}
}

// describeAll describes all names, for messages.
func (b *Backend) describeAll() (lines string) {
	for e, err := range b.driver.List(context.Background(), "") {
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

// now returns the time of the backend's clock.
func (b *Backend) now() time.Time {
	return b.startTime.Round(0).Add(time.Since(b.startTime) + time.Duration(b.clockOffset.Load()))
}
