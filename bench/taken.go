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

// A remover takes a lock away from its holder. other is another client.
type remover func(s server, holder, other client, name string) error

// eventTimeout is the longest wait until a holder learns of its loss, and until the next
// holder gets the lock. After it the event counts as "never".
const eventTimeout = 15 * time.Second

// deletedLock measures stored locks: the remover deletes the row or key.
func deletedLock() scenario {
	return removedLock("deleted", "the row or key of the lock is deleted behind the holder's back; "+medianAndWorst(20), 20,
		func(c contender) remover { return c.deleteLock })
}

// endedSession measures locks that depend on a session or on a lease of etcd: the remover
// ends it.
func endedSession() scenario {
	return removedLock("ended", "the session ends on which the lock hangs (for Pawl: all that it has)", 1,
		func(c contender) remover { return c.endSession })
}

// brokenLock measures only Pawl: `pawl break` with a delay of two seconds.
func brokenLock() scenario {
	return removedLock("broken", "an operator breaks the lock, and keeps it closed for 2 s; "+medianAndWorst(20), 20,
		func(c contender) remover {
			if !strings.HasPrefix(c.name, "pawl") {
				return nil
			}
			return func(_ server, _, other client, name string) error {
				locks := other.(pawlLocker).client
				e, err := locks.Inspect(context.Background(), name)
				if err != nil || len(e.Holders) != 1 {
					return fmt.Errorf("%q is not held: %w", name, err)
				}
				return locks.Break(context.Background(), name, e.Holders[0].Fence, &pawl.BreakOptions{Delay: 2 * time.Second})
			}
		})
}

func medianAndWorst(n int) string { return fmt.Sprintf("median and worst of %d", n) }

// removedLock measures two times after a lock is taken away: until the client notifies
// the old holder, and until a waiter gets the lock. If the waiter is first, both holders
// believe for a while that they hold the lock.
func removedLock(name, what string, names int, removerOf func(c contender) remover) scenario {
	return scenario{
		name: name, description: what, unit: "ms to told", otherFigures: []string{"worst", "ms to the next holder", "unlock fails"}, rounds: 1,
		fits: func(c contender) bool { return removerOf(c) != nil },
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
			all := make([]*takeover, names)
			for i := range all {
				if all[i], err = startTakeover(cl, other, fmt.Sprint("taken", i)); err != nil {
					return nil, err
				}
				time.Sleep(100 * time.Millisecond)
			}
			defer func() {
				for _, r := range all {
					r.endWaits()
				}
			}()
			for _, r := range all {
				r.removedAt = time.Now()
				if err := removerOf(c)(s, cl, other, r.name); err != nil {
					return nil, err
				}
			}
			var notified, next []float64
			failed := 0.0
			for _, r := range all {
				notified, next = append(notified, delayUntil(r.removedAt, r.notified)), append(next, delayUntil(r.removedAt, r.next))
			}
			for _, r := range all {
				if r.unlock() != nil {
					failed += 1 / float64(names)
				}
			}
			return figures{median(notified), slices.Max(notified), median(next), failed}, nil
		},
	}
}

// A takeover is a name with a holder and a waiter.
type takeover struct {
	name           string
	unlock         func() error
	removedAt      time.Time      // when the remover took the lock away
	notified, next chan time.Time // buffered; when the holder was notified, and when the waiter got the lock
	endWaits       func()         // ends the waits
}

func startTakeover(cl, other client, name string) (*takeover, error) {
	unlock, lost, err := cl.lock(context.Background(), name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &takeover{name: name, unlock: unlock, notified: make(chan time.Time, 1), next: make(chan time.Time, 1)}
	var wg sync.WaitGroup
	r.endWaits = func() { cancel(); wg.Wait() }
	if lost != nil {
		lostLease := lost()
		wg.Go(func() {
			select {
			case <-lostLease:
				r.notified <- time.Now()
			case <-ctx.Done():
			}
		})
	} else {
		r.notified = nil // the library does not notify holders
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

// delayUntil returns the milliseconds from a time until the time of an event, or infinity
// if the event does not come within eventTimeout.
func delayUntil(from time.Time, event <-chan time.Time) float64 {
	if event == nil {
		return math.Inf(1)
	}
	timeout := time.NewTimer(time.Until(from.Add(eventTimeout)))
	defer timeout.Stop()
	select {
	case at := <-event:
		return ms(at.Sub(from))
	case <-timeout.C:
		return math.Inf(1)
	}
}
