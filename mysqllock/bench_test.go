package mysqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/mysqllock"
)

// durable is a server that makes each commit durable, as real ones do.
func durable(b *testing.B) (*mysqltest.Server, string) {
	b.Helper()
	s := mysqltest.Start(b, "--innodb-flush-log-at-trx-commit=1")
	return s, "mysql:" + s.DSN(mysqltest.Database) + "?pool=64"
}

// BenchmarkCycle acquires and releases names, one for each goroutine, in three ways:
// through a driver; as two bare updates of a row of the same size, for comparison; and as
// GET_LOCK, which makes nothing durable and keeps a connection for each lock. The ways
// alternate, because the speed of a disk varies.
func BenchmarkCycle(b *testing.B) {
	s, url := durable(b)
	d := openDriver(b, url)
	db := s.Open(b, mysqltest.Database)
	db.SetMaxOpenConns(64)
	db.SetMaxIdleConns(64)
	exec(b, db, "CREATE TABLE bare (name VARBINARY(255) PRIMARY KEY, version BIGINT, entry LONGBLOB)")
	for i := range 64 {
		exec(b, db, fmt.Sprintf("INSERT INTO bare VALUES ('job-%d', 0, '')", i))
	}
	kinds := []struct {
		name  string
		cycle func(i, n int) error
	}{
		{"floor", func(i, n int) error { return bare(db, i, n) }},
		{"pawl", func(i, _ int) error { return drivertest.Cycle(d, fmt.Sprint("job-", i)) }},
		{"getlock", func(i, _ int) error { return getLock(db, fmt.Sprintf("job-%d", i)) }},
	}
	for _, goroutines := range []int{1, 64} {
		for round := range 3 {
			for _, k := range kinds {
				b.Run(fmt.Sprintf("%s/%d/%d", k.name, goroutines, round), func(b *testing.B) {
					exec(b, db, "UPDATE bare SET version = 0")
					b.ResetTimer()
					var done sync.WaitGroup
					for i := range goroutines {
						done.Go(func() {
							for n := range (b.N + goroutines - 1) / goroutines {
								if err := k.cycle(i, n); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					done.Wait()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
				})
			}
		}
	}
}

// bare makes two updates, each durable, of a row with a version.
func bare(db *sql.DB, i, n int) error {
	for k, length := range []int{90, 20} {
		version := 2*n + k
		statement := fmt.Sprintf("UPDATE bare SET version = %d, entry = x'%0*d' WHERE name = 'job-%d' AND version = %d", version+1, 2*length, version, i, version) //nolint:gosec // of numbers
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func getLock(db *sql.DB, name string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{"DO GET_LOCK('" + name + "', 10)", "DO RELEASE_LOCK('" + name + "')"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkHandOver lets clients that share only the server lock one name, again and
// again. A hand-over is from the call of Release until the next holder has the name.
func BenchmarkHandOver(b *testing.B) {
	for _, clients := range []int{2, 8, 32} {
		for _, work := range []time.Duration{0, 2 * time.Millisecond, 50 * time.Millisecond} {
			b.Run(fmt.Sprintf("clients=%d/work=%v", clients, work), func(b *testing.B) { handOver(b, clients, work) })
		}
	}
}

func handOver(b *testing.B, clients int, work time.Duration) {
	s, url := durable(b)
	db := s.Open(b, mysqltest.Database)
	var released atomic.Int64
	var mu sync.Mutex
	var gaps []time.Duration
	turns, longest := make([]int, clients), time.Duration(0)
	ended, end := context.WithTimeout(ctx, 3*time.Second)
	defer end()
	var done sync.WaitGroup
	all := make([]*pawl.Client, clients)
	for i := range all {
		d, err := concrete(mysqllock.Open(ctx, url))
		noError(b, err)
		all[i], err = pawl.New(d, nil)
		noError(b, err)
	}
	before := statements(b, db)
	b.ResetTimer()
	for i, c := range all {
		done.Go(func() {
			for ended.Err() == nil {
				began := time.Now()
				l, err := c.Mutex("job").Lock(ended)
				if err != nil {
					return
				}
				now := time.Now()
				mu.Lock()
				if at := released.Load(); at > 0 {
					gaps = append(gaps, time.Duration(now.UnixNano()-at))
				}
				longest = max(longest, now.Sub(began))
				turns[i]++
				mu.Unlock()
				time.Sleep(work)
				released.Store(time.Now().UnixNano())
				if err := l.Release(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	}
	done.Wait()
	b.StopTimer()
	asked := statements(b, db) - before
	for _, c := range all {
		_ = c.Close()
	}
	slices.Sort(gaps)
	sum, squares := 0.0, 0.0
	for _, n := range turns {
		sum, squares = sum+float64(n), squares+float64(n)*float64(n)
	}
	b.ReportMetric(float64(gaps[len(gaps)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(gaps[len(gaps)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest-wait")
	b.ReportMetric(sum*sum/(float64(clients)*squares), "jain")
	b.ReportMetric(float64(asked)/sum, "statements/turn")
	b.ReportMetric(sum/b.Elapsed().Seconds(), "turns/s")
}

// statements returns the number of statements that the server has received.
func statements(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	var variable string
	noError(t, db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&variable, &n))
	return n
}

// BenchmarkRenew renews a thousand leases.
func BenchmarkRenew(b *testing.B) {
	_, url := durable(b)
	drivertest.BenchmarkRenew(b, openDriver(b, url))
}

// BenchmarkBesideHolders measures the cost of a step beside many holders of its name.
func BenchmarkBesideHolders(b *testing.B) {
	s := mysqltest.Start(b)
	drivertest.BenchmarkHolders(b, openDriver(b, "mysql:"+s.DSN(mysqltest.Database)), nil, 1, 100, 1000)
}

// BenchmarkAll measures pawl.All beside one lock.
func BenchmarkAll(b *testing.B) {
	_, url := durable(b)
	drivertest.BenchmarkAll(b, openDriver(b, url))
}
