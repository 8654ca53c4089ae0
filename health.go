package pawl

import (
	"context"
	"fmt"
	"time"
)

// WithHealth has check called while a lease is held, every third of its TTL. When check
// returns an error, or does not return within that time, the lease is not renewed any
// more and is lost with ReasonUnhealthy: so a holder that is stuck, and would otherwise
// be renewed for ever, makes room for the next one when its TTL is over. Its own Release
// makes room at once.
//
// check's context is the lease's, and ends when check has to have returned.
func WithHealth(check func(ctx context.Context) error) LockOption {
	return lockOption(func(o *lockOptions) { o.health = check })
}

// watchHealth asks the holder of a lease how it is, until the lease is over.
func (l *Lease) watchHealth(check func(ctx context.Context) error) {
	every := l.claim.TTL / 3
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-l.Done():
			return
		case <-timer.C:
		}
		if err := l.healthy(check, every); err != nil {
			l.h.lose(LostError{Reason: ReasonUnhealthy, Err: err})
			return
		}
		timer.Reset(every)
	}
}

func (l *Lease) healthy(check func(ctx context.Context) error, within time.Duration) error {
	ctx, cancel := context.WithTimeout(l.Context(), within)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- check(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the health function did not return within %v", within)
	}
}
