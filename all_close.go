package pawl

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/lazyctx"
	"github.com/pawl-go/pawl/internal/returner"
)

// firstLeaseTimeout is the longest time for which releaseAll keeps the first lease while
// it releases the others.
const firstLeaseTimeout = 100 * time.Millisecond

// releaseAll releases leases, at least one, side by side, and returns when the backends
// have answered. It releases the first one last: callers that want the same names wait
// for it, and then find the others free. Group.acquire sorts the leases, so that the
// first name is the same for all of these callers.
//
// releaseAll stops waiting when bound ends, or after the time limit of one request. Then
// the client releases the rest in the background. ctx has the values for the Observer.
func releaseAll(ctx, bound context.Context, leases []*Lease, unused bool) error {
	longest := time.Duration(0)
	for _, l := range leases {
		longest = max(longest, l.h.c.settings.requestTimeout(l.h.claim.TTL))
	}
	boundedCtx := lazyctx.WithDeadline(bound, time.Now().Add(longest))
	defer boundedCtx.Cancel()
	errs := make([]error, len(leases))
	end := func(i int) { errs[i] = leases[i].releaseWithin(ctx, boundedCtx, unused) }
	others := callInParallel(len(leases)-1, func(i int) { end(i + 1) })
	defer others.join() // even if the Observer panics
	select {
	case <-others.done:
	case <-time.After(firstLeaseTimeout):
	}
	end(0)
	others.join()
	return errors.Join(errs...)
}

// parallelCalls are calls of a function that run side by side.
type parallelCalls struct {
	done chan struct{} // closed when all calls have ended

	mu    sync.Mutex // protects crash
	crash func()     // panics as one of the calls did, or ends the goroutine; nil if all calls have returned
}

// callInParallel calls f with 0 to n-1, at most returner.MaxInFlight at a time.
func callInParallel(n int, f func(i int)) *parallelCalls {
	c := &parallelCalls{done: make(chan struct{})}
	var all sync.WaitGroup
	slots := make(chan struct{}, returner.MaxInFlight)
	for i := range n {
		all.Go(func() {
			slots <- struct{}{}
			returned := false
			defer func() {
				<-slots
				p := recover()
				c.mu.Lock()
				defer c.mu.Unlock()
				if p != nil {
					c.crash = func() { panic(p) }
				} else if !returned && c.crash == nil {
					c.crash = runtime.Goexit
				}
			}()
			f(i)
			returned = true
		})
	}
	go func() {
		all.Wait()
		close(c.done)
	}()
	return c
}

// join waits for all calls. If one of them has panicked, or ended its goroutine, join
// does so, too.
func (c *parallelCalls) join() {
	<-c.done
	if c.crash != nil {
		c.crash()
	}
}
