package main

import (
	"context"
	"sync"
	"time"
)

// renewed is a lease that its user renews in a goroutine, because the library does not
// renew. The goroutine notifies the holder of the loss when the lease ends, or when the
// server refuses a renewal.
type renewed struct {
	loss
	mu     sync.Mutex // protects until
	until  time.Time
	stop   context.CancelFunc
	ended  chan struct{}
	unlock func(ctx context.Context) error
}

// renew begins to renew a lease. extend returns the new end of the lease, or errLost if
// the lease has ended. After another error, the goroutine calls extend again when the
// next renewal is due.
func renew(until time.Time, every time.Duration, extend func(ctx context.Context) (time.Time, error), unlock func(ctx context.Context) error) *renewed {
	ctx, stop := context.WithCancel(context.Background())
	r := &renewed{loss: newLoss(), until: until, stop: stop, ended: make(chan struct{}), unlock: unlock}
	go r.keep(ctx, every, extend)
	return r
}

func (r *renewed) keep(ctx context.Context, every time.Duration, extend func(ctx context.Context) (time.Time, error)) {
	defer close(r.ended)
	type answer struct {
		until time.Time
		err   error
	}
	answers := make(chan answer, 1)
	asking := false
	tick := time.NewTicker(every)
	defer tick.Stop()
	over := time.NewTimer(time.Until(r.until))
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			r.lose()
			return
		case <-tick.C:
			if !asking {
				asking = true
				go func() {
					until, err := extend(ctx)
					answers <- answer{until, err}
				}()
			}
		case a := <-answers:
			switch asking = false; {
			case a.err == errLost:
				r.lose()
				return
			case a.err == nil:
				r.mu.Lock()
				r.until = a.until
				r.mu.Unlock()
				over.Reset(time.Until(a.until))
			}
		}
	}
}

// Err also reads the clock, because the goroutine may not have run yet.
func (r *renewed) Err() error {
	r.mu.Lock()
	late := time.Now().After(r.until)
	r.mu.Unlock()
	if late {
		return errLost
	}
	return r.loss.Err()
}

func (r *renewed) Fence() uint64 { return 0 }

func (r *renewed) Release(ctx context.Context) error {
	r.stop()
	<-r.ended
	return r.unlock(ctx)
}
