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

// Turns are clients that take one name in turn, and the beliefs of each. They know
// nothing of how a lock works: the beliefs of holders must not overlap, by the monotonic
// clock of this process, and fences rise.
type Turns struct {
	tb   TB
	ttl  time.Duration
	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex // protects beliefs
	beliefs []belief
}

// A belief is the belief of one holder: at both times its lease counted as good.
type belief struct {
	who      string
	fence    uint64
	from, to time.Time
	lost     bool
}

// NewTurns returns turns with leases of this TTL.
func NewTurns(tb TB, ttl time.Duration) *Turns {
	u := &Turns{tb: tb, ttl: ttl}
	u.life, u.end = context.WithCancel(context.Background())
	return u
}

func (u *Turns) stop() {
	u.end()
	u.all.Wait()
}

// Take makes a client take the name again and again. Each time the client holds it for a
// moment or for some seconds, or until it learns that it lost it.
func (u *Turns) Take(who string, c *pawl.Client) {
	u.tb.Cleanup(u.stop)
	u.all.Go(func() {
		for u.life.Err() == nil {
			within, cancel := context.WithTimeout(u.life, 5*time.Second)
			l, err := u.lock(within, c)
			if cancel(); err != nil {
				u.checkError(who, err)
				time.Sleep(20 * time.Millisecond)
				continue
			}
			holds := rand.N(100 * time.Millisecond)
			if rand.IntN(8) == 0 {
				holds *= 30
			}
			u.hold(who, l, holds)
		}
	})
}

func (u *Turns) lock(ctx context.Context, c *pawl.Client) (*pawl.Lease, error) {
	return c.Mutex("turns", pawl.WithTTL(u.ttl)).Lock(ctx)
}

func (u *Turns) hold(who string, l *pawl.Lease, holds time.Duration) {
	b := belief{who: who, fence: l.Fence()}
	for began := time.Now(); time.Since(began) < holds && u.life.Err() == nil; time.Sleep(2 * time.Millisecond) {
		now := time.Now() // read first: if the client still believes so, it did then
		if l.Err() != nil {
			if b.lost = true; !errors.Is(context.Cause(l.Context()), pawl.ErrLost) {
				u.tb.Errorf("%s was notified of %v; want ErrLost", who, context.Cause(l.Context()))
			}
			break
		}
		if b.to = now; b.from.IsZero() {
			b.from = now
		}
	}
	if !b.from.IsZero() {
		u.mu.Lock()
		u.beliefs = append(u.beliefs, b)
		u.mu.Unlock()
	}
	if err := l.Release(u.life); err != nil && !errors.Is(err, pawl.ErrLost) {
		u.checkError(who, err)
	}
}

// checkError checks the error of a client that gets nothing: another client holds the
// name, the backend cannot be reached, or the client's time is over.
func (u *Turns) checkError(who string, err error) {
	if !errors.Is(err, pawl.ErrHeld) && !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, pawl.ErrNoSuchLease) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		u.tb.Errorf("%s: %v", who, err)
	}
}

// had returns the number of times that these clients, or all if there is no name, have
// had the lock since some time.
func (u *Turns) had(since time.Time, who ...string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range u.beliefs {
		if !b.from.Before(since) && (len(who) == 0 || slices.Contains(who, b.who)) {
			n++
		}
	}
	return n
}

// Until waits until these clients, or any if there is no name, have had the lock n times
// from now on.
func (u *Turns) Until(n int, who ...string) {
	u.tb.Helper()
	for began := time.Now(); u.had(began, who...) < n; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute { // only a hang takes so long
			u.tb.Fatalf("%q had it %d times, want %d", who, u.had(began, who...), n)
		}
	}
}

// Check ends the turns, and examines the beliefs. It returns the number of leases whose
// holders learned that they lost them.
func (u *Turns) Check() (lost int) {
	u.tb.Helper()
	u.stop()
	slices.SortFunc(u.beliefs, func(a, b belief) int { return a.from.Compare(b.from) })
	var before belief
	for _, b := range u.beliefs {
		if before.who != "" && !b.from.After(before.to) {
			u.tb.Errorf("two believed that they hold it: %+v and %+v", before, b)
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
// Some of them reach only that server, some reach it first and then others, and one
// reaches only the others. A client that is cut off gets nothing, a holder there learns
// in time that it lost, and no name is granted while it is held.
func Partition(tb TB, stuck, moves, far func() *pawl.Client, cut func() (heal func())) {
	tb.Helper()
	u, holder := NewTurns(tb, 4*time.Second), stuck()
	for i := range 2 {
		u.Take(fmt.Sprint("stuck", i), stuck())
		u.Take(fmt.Sprint("moves", i), moves())
	}
	u.Take("far", far())
	u.Until(30)
	held, err := u.lock(u.life, holder)
	noError(tb, err)
	u.all.Go(func() { u.hold("keeps", held, time.Minute) })
	heal := cut()
	u.Until(1, "far")
	u.Until(4, "moves0", "moves1")
	if n := u.had(time.Now().Add(-3*time.Second), "stuck0", "stuck1"); n > 0 {
		tb.Errorf("clients that cannot reach a majority got it %d times", n)
	}
	heal()
	u.Until(4, "stuck0", "stuck1")
	if u.Check() == 0 {
		tb.Errorf("the holder was not notified that it was cut off")
	}
}
