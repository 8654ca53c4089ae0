package postgreslock_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/postgreslock"
)

// BenchmarkCheckedPermits runs 32 holders of one semaphore that insert, check their lease
// and commit, for a minute. It measures their transactions, and how many leases of 10 s
// they lose.
func BenchmarkCheckedPermits(b *testing.B) {
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprintf("Clients%d", clients), func(b *testing.B) {
			url := durableServer(b).URL("postgres")
			for b.Loop() {
				done, lost := runCheckedPermits(b, url, 32, clients, 10*time.Second, time.Minute)
				b.ReportMetric(float64(done)/60, "checks/s")
				b.ReportMetric(float64(lost), "lost")
			}
		})
	}
}

// runCheckedPermits runs the holders of a semaphore for the time d. It returns the
// numbers of transactions and of lost leases.
func runCheckedPermits(t testing.TB, url string, holders, clients int, ttl, d time.Duration) (done, lost int64) {
	t.Helper()
	exec(t, conn(t, url), "CREATE TABLE IF NOT EXISTS work (fence bigint)")
	pool := poolOf(t, url, int32(holders))
	all := make([]*pawl.Client, clients)
	for i := range all {
		all[i] = client(t, url)
	}
	var running sync.WaitGroup
	var checks, losses atomic.Int64
	end := time.Now().Add(d)
	for i := range holders {
		running.Go(func() {
			for time.Now().Before(end) {
				l, err := all[i%clients].Semaphore("permits", holders, pawl.WithTTL(ttl)).Acquire(ctx, 1)
				if err != nil {
					continue
				}
				for time.Now().Before(end) && l.Err() == nil {
					err := pgx.BeginFunc(l.Context(), pool, func(tx pgx.Tx) error {
						if _, err := tx.Exec(ctx, "INSERT INTO work VALUES ($1)", int64(l.Fence())); err != nil {
							return err
						}
						return postgreslock.CheckLease(ctx, tx, l)
					})
					if err == nil {
						checks.Add(1)
					} else if l.Err() == nil && !errors.Is(err, driver.ErrStale) {
						t.Error(err)
					}
				}
				if l.Err() != nil {
					losses.Add(1)
				}
				_ = l.Release(ctx)
			}
		})
	}
	running.Wait()
	return checks.Load(), losses.Load()
}

// BenchmarkLockedNames measures how many of 170 leases of 5 s a client loses while
// transactions lock the rows of its other 30 leases for half a minute.
func BenchmarkLockedNames(b *testing.B) {
	for b.Loop() {
		url := durableServer(b).URL("postgres")
		locks := client(b, url)
		var leases []*pawl.Lease
		for i := range 200 {
			l, err := locks.Mutex(fmt.Sprint("job ", i), pawl.WithTTL(5*time.Second)).Lock(ctx)
			noError(b, err)
			leases = append(leases, l)
		}
		for i := range 30 {
			noError(b, postgreslock.CheckLease(ctx, begin(b, conn(b, url)), leases[i]))
		}
		time.Sleep(30 * time.Second)
		lost := 0
		for _, l := range leases[30:] {
			if l.Err() != nil {
				lost++
			}
		}
		b.ReportMetric(float64(lost), "lost")
	}
}

// BenchmarkAllBesideALockedName measures how many of 20 leases of 5 s a client loses in
// half a minute. Meanwhile another client tries to lock each of these names together with
// a name whose row is locked.
func BenchmarkAllBesideALockedName(b *testing.B) {
	for b.Loop() {
		url := durableServer(b).URL("postgres")
		holder, other := client(b, url), client(b, url)
		locked, err := holder.Mutex("z").Lock(ctx)
		noError(b, err)
		noError(b, postgreslock.CheckLease(ctx, begin(b, conn(b, url)), locked))
		var leases []*pawl.Lease
		var all sync.WaitGroup
		end := time.Now().Add(30 * time.Second)
		for i := range 20 {
			name := fmt.Sprint("job ", i)
			l, err := holder.Mutex(name, pawl.WithTTL(5*time.Second)).Lock(ctx)
			noError(b, err)
			leases = append(leases, l)
			all.Go(func() {
				for time.Now().Before(end) {
					if _, err := pawl.All(other.Mutex(name), other.Mutex("z")).TryLock(ctx); err == nil {
						b.Error("a held name was granted")
					}
				}
			})
		}
		all.Wait()
		lost := 0
		for _, l := range leases {
			if l.Err() != nil {
				lost++
			}
		}
		b.ReportMetric(float64(lost), "lost")
	}
}
