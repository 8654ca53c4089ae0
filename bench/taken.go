package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// A taker takes the lock of a name from its holder. other is another client.
type taker func(s server, holder, other client, name string) error

// patience is the longest wait for a holder to learn that its lock is gone, and for the
// next holder to get the lock. A later event counts as one that never came.
const patience = 15 * time.Second

// deleted measures locks that are stored: the taker deletes the row or key.
func deleted() scenario {
	return taken("deleted", "the row or key of the lock is deleted behind the holder's back; "+often(20), 20,
		func(c contender) taker { return c.drop })
}

// ended measures locks that hang on a session, or on a lease of etcd: the taker ends it.
func ended() scenario {
	return taken("ended", "the session ends on which the lock hangs (for Pawl: all that it has)", 1,
		func(c contender) taker { return c.end })
}

// broken measures Pawl only: `pawl break`, with a delay of two seconds.
func broken() scenario {
	return taken("broken", "an operator breaks the lock, and keeps it closed for 2 s; "+often(20), 20,
		func(c contender) taker {
			if !strings.HasPrefix(c.name, "pawl") {
				return nil
			}
			return func(_ server, _, other client, name string) error {
				locks := other.(pawlLocker).c
				e, err := locks.Inspect(context.Background(), name)
				if err != nil || len(e.Holders) != 1 {
					return fmt.Errorf("%q is not held: %w", name, err)
				}
				return locks.Break(context.Background(), name, e.Holders[0].Fence, &pawl.BreakOptions{Delay: 2 * time.Second})
			}
		})
}

func often(n int) string { return fmt.Sprintf("median and worst of %d", n) }

// taken measures two times, both from the moment when a lock is taken away: until the
// client notifies the old holder, and until a waiter gets the lock. If the waiter gets it
// first, both believe for a while that they hold it.
func taken(name, what string, names int, how func(c contender) taker) scenario {
	return scenario{
		name: name, what: what, unit: "ms to told", others: []string{"worst", "ms to the next holder", "unlock fails"}, rounds: 1,
		fit: func(c contender) bool { return how(c) != nil },
		run: func(s server, c contender, _ time.Duration) (figures, error) {
			cl, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer cl.close()
			other, err := c.open(s.address(), 30*time.Second)
			if err != nil {
				return nil, err
			}
			defer other.close()
			all := make([]*robbery, names)
			for i := range all {
				if all[i], err = rob(cl, other, fmt.Sprint("taken", i)); err != nil {
					return nil, err
				}
				time.Sleep(100 * time.Millisecond)
			}
			defer func() {
				for _, r := range all {
					r.over()
				}
			}()
			for _, r := range all {
				r.at = time.Now()
				if err := how(c)(s, cl, other, r.name); err != nil {
					return nil, err
				}
			}
			var told, next []float64
			failed := 0.0
			for _, r := range all {
				told, next = append(told, since(r.at, r.told)), append(next, since(r.at, r.next))
			}
			for _, r := range all {
				if r.unlock() != nil {
					failed += 1 / float64(names)
				}
			}
			return figures{median(told), slices.Max(told), median(next), failed}, nil
		},
	}
}

// A robbery is a name that is held, and waited for.
type robbery struct {
	name       string
	unlock     func() error
	at         time.Time      // when the taker took the name away
	told, next chan time.Time // each has room for one
	over       func()         // ends all that waits
}

func rob(cl, other client, name string) (*robbery, error) {
	unlock, lost, err := cl.lock(context.Background(), name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &robbery{name: name, unlock: unlock, told: make(chan time.Time, 1), next: make(chan time.Time, 1)}
	var wg sync.WaitGroup
	r.over = func() { cancel(); wg.Wait() }
	if lost != nil {
		gone := lost()
		wg.Go(func() {
			select {
			case <-gone:
				r.told <- time.Now()
			case <-ctx.Done():
			}
		})
	} else {
		r.told = nil // the library does not notify a holder
	}
	wg.Go(func() {
		unlock, _, err := other.lock(ctx, name)
		if err == nil {
			r.next <- time.Now()
			<-ctx.Done()
			_ = unlock()
		}
	})
	return r, nil
}

// since returns the time from an instant until a later one, in ms, or infinity if the
// later one did not come within patience.
func since(from time.Time, comes <-chan time.Time) float64 {
	if comes == nil {
		return math.Inf(1)
	}
	late := time.NewTimer(time.Until(from.Add(patience)))
	defer late.Stop()
	select {
	case at := <-comes:
		return ms(at.Sub(from))
	case <-late.C:
		return math.Inf(1)
	}
}
