package servertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// Turns has clients that take turns at one name, and records when each was sure to hold
// it. By the monotonic clock of this process these times must not overlap, and fences
// must rise.
type Turns struct {
	tb  TB
	ttl time.Duration
	ctx context.Context
	end context.CancelFunc
	all sync.WaitGroup

	mu    sync.Mutex // protects holds
	holds []hold
}

// A hold is one lease of a client. At from and at to, Err returned nil.
type hold struct {
	client   string
	fence    uint64
	from, to time.Time
	lost     bool
}

// NewTurns returns Turns whose leases have this TTL.
func NewTurns(tb TB, ttl time.Duration) *Turns {
	u := &Turns{tb: tb, ttl: ttl}
	u.ctx, u.end = context.WithCancel(context.Background())
	return u
}

func (u *Turns) stop() {
	u.end()
	u.all.Wait()
}

// Take makes a client lock the name repeatedly. Each time the client holds it for a
// moment or for some seconds, or until it sees that the lease is lost.
func (u *Turns) Take(client string, c *pawl.Client) {
	u.tb.Cleanup(u.stop)
	u.all.Go(func() {
		for u.ctx.Err() == nil {
			within, cancel := context.WithTimeout(u.ctx, 5*time.Second)
			l, err := u.lock(within, c)
			if cancel(); err != nil {
				u.checkError(client, err)
				time.Sleep(20 * time.Millisecond)
				continue
			}
			duration := rand.N(100 * time.Millisecond)
			if rand.IntN(8) == 0 {
				duration *= 30
			}
			u.holdLease(client, l, duration)
		}
	})
}

func (u *Turns) lock(ctx context.Context, c *pawl.Client) (*pawl.Lease, error) {
	return c.Mutex("turns", pawl.WithTTL(u.ttl)).Lock(ctx)
}

func (u *Turns) holdLease(client string, l *pawl.Lease, duration time.Duration) {
	b := hold{client: client, fence: l.Fence()}
	for began := time.Now(); time.Since(began) < duration && u.ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		now := time.Now() // before Err, so that the lease is held at this time
		if l.Err() != nil {
			if b.lost = true; !errors.Is(context.Cause(l.Context()), pawl.ErrLost) {
				u.tb.Errorf("%s was notified of %v; want ErrLost", client, context.Cause(l.Context()))
			}
			break
		}
		if b.to = now; b.from.IsZero() {
			b.from = now
		}
	}
	if !b.from.IsZero() {
		u.mu.Lock()
		u.holds = append(u.holds, b)
		u.mu.Unlock()
	}
	if err := l.Release(u.ctx); err != nil && !errors.Is(err, pawl.ErrLost) {
		u.checkError(client, err)
	}
}

// checkError allows only these errors: another client holds the name, the backend is
// unreachable, or the ctx has ended.
func (u *Turns) checkError(client string, err error) {
	if !errors.Is(err, pawl.ErrHeld) && !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, pawl.ErrNoSuchLease) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		u.tb.Errorf("%s: %v", client, err)
	}
}

// countHolds returns how often these clients, or all without an argument, have held the
// lock since the given time.
func (u *Turns) countHolds(since time.Time, clients ...string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range u.holds {
		if !b.from.Before(since) && (len(clients) == 0 || slices.Contains(clients, b.client)) {
			n++
		}
	}
	return n
}

// Until waits until these clients, or any without an argument, have held the lock n times
// from now on.
func (u *Turns) Until(n int, clients ...string) {
	u.tb.Helper()
	for began := time.Now(); u.countHolds(began, clients...) < n; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute { // only a hang takes so long
			u.tb.Fatalf("the clients %q held the lock %d times, want %d", clients, u.countHolds(began, clients...), n)
		}
	}
}

// Check ends the turns and checks them. It returns the number of leases whose holders saw
// a loss.
func (u *Turns) Check() (lost int) {
	u.tb.Helper()
	u.stop()
	slices.SortFunc(u.holds, func(a, b hold) int { return a.from.Compare(b.from) })
	var before hold
	for _, b := range u.holds {
		if before.client != "" && !b.from.After(before.to) {
			u.tb.Errorf("two clients were sure to hold the lock: %+v and %+v", before, b)
		}
		if b.fence <= before.fence {
			u.tb.Errorf("fence %d after %d: %+v and %+v", b.fence, before.fence, before, b)
		}
		if before = b; b.lost {
			lost++
		}
	}
	return lost
}

// Partition cuts a server off from the others of its cluster while clients take turns.
// Some clients reach only that server, some reach it first and then others, and one
// reaches only the others. A client of only that server must get no lease, a holder there
// must see its loss in time, and two clients must never hold the lock.
func Partition(tb TB, stuck, moves, far func() *pawl.Client, cut func() (heal func())) {
	tb.Helper()
	u, holder := NewTurns(tb, 4*time.Second), stuck()
	for i := range 2 {
		u.Take(fmt.Sprint("stuck", i), stuck())
		u.Take(fmt.Sprint("moves", i), moves())
	}
	u.Take("far", far())
	u.Until(30)
	held, err := u.lock(u.ctx, holder)
	noError(tb, err)
	u.all.Go(func() { u.holdLease("keeps", held, time.Minute) })
	heal := cut()
	u.Until(1, "far")
	u.Until(4, "moves0", "moves1")
	if n := u.countHolds(time.Now().Add(-3*time.Second), "stuck0", "stuck1"); n > 0 {
		tb.Errorf("clients that reach no majority held the lock %d times", n)
	}
	heal()
	u.Until(4, "stuck0", "stuck1")
	if u.Check() == 0 {
		tb.Errorf("the holder that was cut off did not see its loss")
	}
}
