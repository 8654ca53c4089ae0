package natslock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// turns are several clients that take one name in turn, and the beliefs of each. It knows
// nothing of how a lock works: the beliefs of holders must not overlap, by the monotonic
// clock of this process, and fences rise.
type turns struct {
	t    *testing.T
	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	mu     sync.Mutex
	belief []belief
	failed map[string]int // how often a client got nothing
}

// A belief is the belief of one holder: at both times its lease counted as good.
type belief struct {
	who      string
	fence    uint64
	from, to time.Duration
	lost     bool
}

func newTurns(t *testing.T) *turns {
	u := &turns{t: t, failed: map[string]int{}}
	u.life, u.end = context.WithCancel(ctx)
	return u
}

var born = time.Now()

// take makes a client take the name, again and again. Each time the client holds it for a
// moment, or until it learns that it lost it.
func (u *turns) take(who string, c *pawl.Client, ttl, holds time.Duration) {
	u.all.Go(func() {
		for u.life.Err() == nil {
			within, cancel := context.WithTimeout(u.life, 4*time.Second)
			l, err := c.Mutex("n", pawl.WithTTL(ttl)).Lock(within)
			if cancel(); err != nil {
				u.isTyped(who, err)
				continue
			}
			u.hold(who, l, holds)
		}
	})
}

func (u *turns) hold(who string, l *pawl.Lease, holds time.Duration) {
	b := belief{who: who, fence: l.Fence(), from: -1}
	for began := time.Now(); time.Since(began) < holds; time.Sleep(2 * time.Millisecond) {
		now := time.Since(born) // read first: if the client still believes so, it did then
		if l.Err() != nil {
			b.lost = true
			break
		}
		if b.to = now; b.from < 0 {
			b.from = now
		}
	}
	if b.from >= 0 {
		u.mu.Lock()
		u.belief = append(u.belief, b)
		u.mu.Unlock()
	}
	if err := l.Release(u.life); err != nil && !errors.Is(err, pawl.ErrLost) {
		u.isTyped(who, err)
	}
}

// isTyped wants an error for a client that gets nothing: another client holds the name,
// the backend cannot be reached, or its time is over.
func (u *turns) isTyped(who string, err error) {
	if !errors.Is(err, pawl.ErrHeld) && !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, pawl.ErrNoSuchLease) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		u.t.Errorf("%s: %v", who, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failed[who]++
}

// had returns the number of times that these clients, or all if there is no name, have
// had the lock since some time.
func (u *turns) had(since time.Duration, who ...string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range u.belief {
		if b.from >= since && (len(who) == 0 || slices.Contains(who, b.who)) {
			n++
		}
	}
	return n
}

// until waits until these clients have had the lock n times from now on.
func (u *turns) until(n int, limit time.Duration, who ...string) (took time.Duration) {
	u.t.Helper()
	since := time.Since(born)
	for took < limit {
		time.Sleep(20 * time.Millisecond)
		if took = time.Since(born) - since; u.had(since, who...) >= n {
			return took
		}
	}
	u.t.Errorf("%v had it %d times within %v, want %d", who, u.had(since, who...), limit, n)
	return took
}

// check ends all clients, and examines their beliefs. It returns how many leases their
// holders learned to be lost.
func (u *turns) check() (lost int) {
	u.t.Helper()
	u.end()
	u.all.Wait()
	for _, quarrel := range quarrels(u.belief) {
		u.t.Error(quarrel)
	}
	for _, b := range u.belief {
		if b.lost {
			lost++
		}
	}
	u.t.Logf("%d turns, %d of them lost; in vain: %v", len(u.belief), lost, u.failed)
	return lost
}

// quarrels are the contradictions that a working lock excludes.
func quarrels(all []belief) (found []string) {
	slices.SortFunc(all, func(a, b belief) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(all); i++ {
		before, b := all[i-1], all[i]
		if b.from <= before.to {
			found = append(found, fmt.Sprintf("two believed that they hold it: %+v and %+v", before, b))
		}
		if b.fence <= before.fence {
			found = append(found, fmt.Sprintf("fence %d after %d: %+v and %+v", b.fence, before.fence, before, b))
		}
	}
	return found
}
