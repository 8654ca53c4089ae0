package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// redsyncClaimer uses redsync as its README and the documentation of Mutex say:
// WithExpiry sets the TTL, Until returns the end of the lock (Valid is deprecated, issue
// 72), and Extend renews. Its maintainers leave renewals to the user (pull request 153),
// so a goroutine extends after each third of the TTL. The holder counts the lock as lost
// when Until has passed, or when Extend finds another holder. By default Lock gives up
// after 32 tries; here it does not.
type redsyncClaimer struct{ *redsyncLocker }

func openRedsyncClaimer(addr string, ttl time.Duration) (claimer, error) {
	c, err := openRedsync(addr, ttl)
	if err != nil {
		return nil, err
	}
	return redsyncClaimer{c.(*redsyncLocker)}, nil
}

func (r redsyncClaimer) claim(ctx context.Context, name string, try bool) (worker.Lease, error) {
	m := r.redsync.NewMutex(name, redsync.WithExpiry(r.ttl), redsync.WithTries(1<<30))
	lock := m.LockContext
	if try {
		lock = m.TryLockContext
	}
	taken := new(redsync.ErrTaken)
	if err := lock(ctx); errors.As(err, &taken) {
		return nil, errHeld
	} else if err != nil {
		return nil, err
	}
	extend := func(ctx context.Context) (time.Time, error) {
		switch ok, err := m.ExtendContext(ctx); {
		case ok:
			return m.Until(), nil
		case err == nil, errors.As(err, &taken):
			return time.Time{}, errLost
		default:
			return time.Time{}, err
		}
	}
	unlock := func(ctx context.Context) error {
		ok, err := m.UnlockContext(ctx)
		if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) || err == nil && !ok {
			return errLost
		}
		return err
	}
	return startRenewing(m.Until(), r.ttl/3, extend, unlock), nil
}
