package main

import (
	"context"
	"sync"
	"time"
)

// renewedLease is a lease of a library without renewals. A goroutine renews it, and
// notifies the holder of the loss when the lease ends or the server refuses a renewal.
type renewedLease struct {
	lossSignal
	mu     sync.Mutex // protects until
	until  time.Time
	stop   context.CancelFunc
	ended  chan struct{}
	unlock func(ctx context.Context) error
}

// startRenewing begins to renew a lease. extend returns the lease's new end, or errLost
// if it has ended. After another error, the goroutine calls extend again after interval.
func startRenewing(until time.Time, interval time.Duration, extend func(ctx context.Context) (time.Time, error), unlock func(ctx context.Context) error) *renewedLease {
	ctx, stop := context.WithCancel(context.Background())
	r := &renewedLease{lossSignal: newLossSignal(), until: until, stop: stop, ended: make(chan struct{}), unlock: unlock}
	go r.renewUntilStopped(ctx, interval, extend)
	return r
}

func (r *renewedLease) renewUntilStopped(ctx context.Context, interval time.Duration, extend func(ctx context.Context) (time.Time, error)) {
	defer close(r.ended)
	type answer struct {
		until time.Time
		err   error
	}
	answers := make(chan answer, 1)
	extending := false
	tick := time.NewTicker(interval)
	defer tick.Stop()
	leaseEnd := time.NewTimer(time.Until(r.until))
	defer leaseEnd.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-leaseEnd.C:
			r.lose()
			return
		case <-tick.C:
			if !extending {
				extending = true
				go func() {
					until, err := extend(ctx)
					answers <- answer{until, err}
				}()
			}
		case a := <-answers:
			switch extending = false; {
			case a.err == errLost:
				r.lose()
				return
			case a.err == nil:
				r.mu.Lock()
				r.until = a.until
				r.mu.Unlock()
				leaseEnd.Reset(time.Until(a.until))
			}
		}
	}
}

// Err also reads the clock, because the goroutine may not have run yet.
func (r *renewedLease) Err() error {
	r.mu.Lock()
	ended := time.Now().After(r.until)
	r.mu.Unlock()
	if ended {
		return errLost
	}
	return r.lossSignal.Err()
}

func (r *renewedLease) Fence() uint64 { return 0 }

func (r *renewedLease) Release(ctx context.Context) error {
	r.stop()
	<-r.ended
	return r.unlock(ctx)
}
