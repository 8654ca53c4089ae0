package postgreslock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// The column xmin names the transaction that wrote a row last.
func TestSeveralNamesAreOneTransaction(t *testing.T) {
	t.Parallel()
	_, url, _ := freshDatabase(t)
	d := openDriver(t, url)
	for _, exist := range []bool{false, true} {
		var claims []driver.Claim
		for i := range 5 {
			claims = append(claims, mutex(fmt.Sprint("job-", i)))
		}
		grants, err := d.AcquireAll(ctx, claims)
		if err != nil || len(grants) != 5 {
			t.Fatalf("AcquireAll = %v, %v", grants, err)
		}
		var rows, transactions int
		row := conn(t, url).QueryRow(ctx, "SELECT count(*), count(DISTINCT xmin::text) FROM pawl.locks WHERE holders <> ''")
		noError(t, row.Scan(&rows, &transactions))
		if rows != 5 || transactions != 1 {
			t.Errorf("%d rows in %d transactions (rows existed before: %t), want 5 in one", rows, transactions, exist)
		}
		for _, c := range claims {
			releases(t, d, c)
		}
	}
}

// A claim waits for its turn at each name, in the order of the names, and only then takes
// a connection. So many claims cannot deadlock, even with a small pool.
func TestACrowdOnSeveralNamesSharesAFewConnections(t *testing.T) {
	nightly(t, "32 goroutines")
	t.Parallel()
	_, url, _ := freshDatabase(t)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var inside [5]atomic.Int32
	var wg sync.WaitGroup
	for _, size := range []string{"?pool_max_conns=2", "?pool_max_conns=4"} {
		d := openDriver(t, url+size)
		for i := range 16 {
			wg.Go(func() {
				for done := 0; done < 4; {
					picked := rand.Perm(len(inside))[:3] // in any order
					claims := make([]driver.Claim, len(picked))
					for k, n := range picked {
						claims[k] = mutex(fmt.Sprint("job-", n))
					}
					_, err := d.AcquireAll(ctx, claims)
					if errors.Is(err, driver.ErrHeld) {
						continue
					}
					if err != nil {
						t.Errorf("number %d: AcquireAll: %v", i, err)
						return
					}
					done++
					for _, n := range picked {
						if inside[n].Add(1) != 1 {
							t.Errorf("job-%d is held twice", n)
						}
					}
					for k, n := range picked {
						inside[n].Add(-1)
						if err := d.Release(ctx, lease(claims[k])); err != nil {
							t.Errorf("number %d: Release: %v", i, err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
}
