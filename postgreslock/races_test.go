package postgreslock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/fencetest"
)

// A transaction that checked its lease commits before the name is granted to another
// claim, or not at all: raced against expiry, renewals, force and breaks. PAWL_TEST_RACES
// is the number of races.
func TestACommitNeverComesAfterTheNextGrant(t *testing.T) {
	t.Parallel()
	races := 60
	if n, err := strconv.Atoi(os.Getenv("PAWL_TEST_RACES")); err == nil {
		races = n
	}
	_, url, _ := fresh(t)
	holder, other, pool := openDriver(t, url), openDriver(t, url), poolOf(t, url, 32)
	exec(t, conn(t, url), "CREATE TABLE work (name text, fence bigint)", "CREATE INDEX ON work (name)")
	written := func(name string, below uint64) (n int) {
		row := pool.QueryRow(ctx, "SELECT count(*) FROM work WHERE name = $1 AND fence < $2", name, int64(below))
		if err := row.Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	var accepted, refused atomic.Int64
	race := func(i int) {
		c := mutex(fmt.Sprint("race ", i))
		c.TTL = 60 * time.Millisecond
		g, err := holder.Acquire(ctx, c)
		if err != nil {
			t.Error(err)
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			pause := rand.N(80 * time.Millisecond)
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "INSERT INTO work VALUES ($1, $2)", c.Name, int64(g.Fence)); err != nil {
					return err
				}
				time.Sleep(pause)
				if err := holder.CheckLease(ctx, tx, fencetest.Lease(c.Name, g.Fence)); err != nil {
					return err
				}
				time.Sleep(pause / 8)
				return nil
			})
			switch {
			case err == nil:
				accepted.Add(1)
			case errors.Is(err, driver.ErrStale):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
		next := mutex(c.Name)
		time.Sleep(rand.N(40 * time.Millisecond))
		switch i % 4 {
		case 1:
			both.Go(func() { _, _ = holder.Renew(ctx, []driver.LeaseRef{lease(c)}) })
		case 2:
			next.Force = true
		case 3:
			_ = other.Break(ctx, c.Name, g.Fence, 0, next.Owner) // it may have expired
		}
		later, err := other.Acquire(ctx, next)
		for errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrUnavailable) {
			time.Sleep(2 * time.Millisecond)
			later, err = other.Acquire(ctx, next)
		}
		if err != nil {
			t.Error(err)
		}
		before := written(c.Name, later.Fence)
		both.Wait()
		if after := written(c.Name, later.Fence); after != before {
			t.Errorf("race %d: a commit of the fence %d came after the grant of %d", i, g.Fence, later.Fence)
		}
	}
	var all sync.WaitGroup
	var begun atomic.Int64
	for range 16 {
		all.Go(func() {
			for i := begun.Add(1); i <= int64(races); i = begun.Add(1) {
				race(int(i))
			}
		})
	}
	all.Wait()
	t.Logf("%d races: %d commits, %d refused", races, accepted.Load(), refused.Load())
}
