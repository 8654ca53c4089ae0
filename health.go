package pawl

import (
	"context"
	"fmt"
	"time"
)

// WithHealth makes the client call check while a lease is held, every third of its TTL.
// When check returns an error, or does not return within that third, the lease is lost
// with ReasonUnhealthy. So a stuck holder does not keep the name for ever: the next
// holder gets the name after the TTL, or as soon as the stuck one calls Release.
//
// The context of check is the lease's, and ends after a third of the TTL. Default: no
// check. Locking returns ErrInvalid if check is nil.
func WithHealth(check func(ctx context.Context) error) LockOption {
	return lockOption(func(o *lockOptions) { o.health, o.nilHealth = check, check == nil })
}

// watchHealth calls check until the lease is over.
func (l *Lease) watchHealth(check func(ctx context.Context) error) {
	interval := l.claim.TTL / 3
	for {
		select {
		case <-l.Done():
			return
		case <-time.After(interval):
		}
		if err := l.checkHealth(check, interval); err != nil {
			l.h.lose(LostError{Reason: ReasonUnhealthy, Err: err})
			return
		}
	}
}

func (l *Lease) checkHealth(check func(ctx context.Context) error, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(l.Context(), timeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- check(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the health function did not return within %v", timeout)
	}
}
