package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// gooseClaimer uses goose's lockers with a table, as NewPostgresTableLocker documents
// them. A heartbeat renews the lease. If it fails, goose only logs that and does not
// notify the holder. Two settings are better than goose's defaults: the heartbeat comes
// after each third of the TTL, and a waiter polls each 100 ms, not each 5 s.
type gooseClaimer struct{ *gooseTable }

func openGooseClaimer(driver string, url func(string) string, newLocker func(...lock.TableLockerOption) (lock.Locker, error)) func(string, time.Duration) (claimer, error) {
	open := openGooseTable(driver, url, newLocker)
	return func(addr string, ttl time.Duration) (claimer, error) {
		c, err := open(addr, ttl)
		if err != nil {
			return nil, err
		}
		return gooseClaimer{c.(*gooseTable)}, nil
	}
}

func (g gooseClaimer) claim(ctx context.Context, name string, try bool) (worker.Lease, error) {
	tries := uint64(1 << 30)
	if try {
		tries = 1
	}
	l, err := g.newLocker(lock.WithTableLockID(gooseLockID(name)), lock.WithTableLeaseDuration(g.ttl), lock.WithTableLogger(discardLogger),
		lock.WithTableHeartbeatInterval(g.ttl/3), lock.WithTableUnlockTimeout(100*time.Millisecond, 1),
		lock.WithTableLockTimeout(100*time.Millisecond, tries))
	if err != nil {
		return nil, err
	}
	leaseCtx, detach, end := newLeaseCtx(ctx) // the heartbeat ends with the ctx of Lock
	switch err := l.Lock(leaseCtx, g.db); {
	case err != nil:
		end()
		if try && ctx.Err() == nil {
			return nil, errHeld
		}
		return nil, err
	case !detach():
		_ = l.Unlock(context.Background(), g.db)
		return nil, ctx.Err()
	}
	return gooseLease{g, l, end}, nil
}

type gooseLease struct {
	claimer gooseClaimer
	locker  lock.Locker
	end     context.CancelFunc
}

func (l gooseLease) Fence() uint64         { return 0 }
func (l gooseLease) Err() error            { return nil }
func (l gooseLease) Done() <-chan struct{} { return nil }

func (l gooseLease) Release(ctx context.Context) error {
	defer l.end()
	return l.locker.Unlock(ctx, l.claimer.db)
}

var discardLogger = slog.New(slog.DiscardHandler)
