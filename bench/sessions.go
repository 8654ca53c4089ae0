package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// sessionTables makes the tables for the prototype of docs/internals/one-renewal.md. A
// lease belongs to its client's session. Each session has one row, with its end.
const sessionTables = `
	CREATE TABLE session (id text PRIMARY KEY, until timestamptz NOT NULL) WITH (fillfactor = 50);
	CREATE TABLE held (name text PRIMARY KEY, session text, fence bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
	INSERT INTO session VALUES ('me', now() + '1 hour'), ('other', now() + '1 hour')`

// The statements of the prototype. grantWithSession locks the session of its client, so
// that the session cannot end meanwhile, and checks the session of the name's holder.
const (
	renewSession     = `UPDATE session SET until = clock_timestamp() + '30 s' WHERE id = 'me' AND until > clock_timestamp()`
	grantWithSession = `WITH mine AS (SELECT FROM session WHERE id = 'me' AND until > clock_timestamp() FOR SHARE)
		UPDATE held SET session = 'me', fence = fence + 1 WHERE name = $1 AND EXISTS (SELECT FROM mine) AND NOT EXISTS
		(SELECT FROM session WHERE id = held.session AND id <> 'me' AND until > clock_timestamp())`
	grantWithoutSession = `UPDATE held SET session = 'me', fence = fence + 1 WHERE name = $1`
)

// measureSessions measures how much time one renewal for all leases of a client saves,
// and its cost for each grant.
func measureSessions(e engine) error {
	if e.name != "postgres" {
		return fmt.Errorf("the prototype needs postgres, not %s", e.name)
	}
	s, err := startPostgres()
	if err != nil {
		return err
	}
	defer s.stop()
	db := s.(*sqlServer).db
	if _, err := db.Exec(sessionTables); err != nil {
		return err
	}
	d, err := driver.Open(context.Background(), postgresURL(s.address())+"&pool_max_conns=16")
	if err != nil {
		return err
	}
	defer d.Close()
	fmt.Printf("%s, %d cores, load %.1f, %s\n\n", runtime.Version(), runtime.NumCPU(), loadAverage(), commit())
	fmt.Println("| leases of one client | renewal of each: ms | client, server: ms of a core | WAL: kB | of the session: ms | client, server | WAL |")
	fmt.Println("|---|---|---|---|---|---|---|")
	var leases []driver.LeaseRef
	for _, n := range []int{1, 100, 1000, 10_000} {
		if leases, err = holdLeases(d, leases, n); err != nil {
			return err
		}
		each, err := measureSQL(s, db, func() error { return renewAll(d, leases) })
		if err != nil {
			return err
		}
		session, err := measureSQL(s, db, func() error { _, err := db.Exec(renewSession); return err })
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %s | %s |\n", n, each, session)
	}
	return measureGrants(s, db)
}

// sqlCost is the cost of one operation.
type sqlCost struct {
	took           time.Duration
	client, server float64 // µs
	wal            float64 // bytes
}

func (c sqlCost) String() string {
	return fmt.Sprintf("%.2f | %.2f, %.2f | %.1f", float64(c.took.Microseconds())/1e3, c.client/1e3, c.server/1e3, c.wal/1e3)
}

// measureSQL repeats an operation for two seconds, and returns its cost.
func measureSQL(s server, db *sql.DB, do func() error) (c sqlCost, err error) {
	if err := do(); err != nil {
		return c, err
	}
	before, cpu, began, times := walBytes(db), startCPUMeter(s), time.Now(), int64(0)
	for ; times < 5 || time.Since(began) < 2*time.Second; times++ {
		if err := do(); err != nil {
			return c, err
		}
	}
	c.took = time.Since(began) / time.Duration(times)
	c.client, c.server = cpu.perCycle(times)
	c.wal = (walBytes(db) - before) / float64(times)
	return c, nil
}

// walBytes returns how many bytes the server has written to its write-ahead log.
func walBytes(db *sql.DB) (bytes float64) {
	if err := db.QueryRow("SELECT pg_current_wal_insert_lsn() - '0/0'").Scan(&bytes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	return bytes
}

// holdLeases takes leases until there are n.
func holdLeases(d driver.Driver, leases []driver.LeaseRef, n int) ([]driver.LeaseRef, error) {
	var mu sync.Mutex
	before := len(leases)
	err := in16Goroutines(n-before, func(i int) error {
		c := servertest.Mutex(fmt.Sprint("job ", before+i))
		c.TTL = time.Hour
		if _, err := d.Acquire(context.Background(), c); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		leases = append(leases, servertest.Lease(c))
		return nil
	})
	return leases, err
}

// renewAll renews leases in batches, as a client does.
func renewAll(d driver.Driver, leases []driver.LeaseRef) error {
	const batch = 1000
	for len(leases) > 0 {
		next := leases[:min(batch, len(leases))]
		answers, err := d.Renew(context.Background(), next)
		for _, answer := range answers {
			if err == nil {
				err = answer
			}
		}
		if err != nil {
			return err
		}
		leases = leases[len(next):]
	}
	return nil
}

// measureGrants measures grants with and without the check of the session. Each goroutine
// grants another name.
func measureGrants(s server, db *sql.DB) error {
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	fmt.Println("\n| grants, goroutines | a row alone: grants/s | client, server: µs of a core | WAL: B | with its session: grants/s | client, server | WAL |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, n := range []int{1, 16} {
		fmt.Printf("| %d", n)
		for i := range n {
			if _, err := db.Exec("INSERT INTO held VALUES ($1) ON CONFLICT DO NOTHING", fmt.Sprint("job ", i)); err != nil {
				return err
			}
		}
		if _, err := grantMany(s, db, grantWithSession, n); err != nil { // warms up the connections
			return err
		}
		for _, statement := range []string{grantWithoutSession, grantWithSession} {
			row, err := grantMany(s, db, statement, n)
			if err != nil {
				return err
			}
			fmt.Print(" | ", row)
		}
		fmt.Println(" |")
	}
	return nil
}

func grantMany(s server, db *sql.DB, statement string, n int) (row string, err error) {
	const times = 4000
	before, cpu, began := walBytes(db), startCPUMeter(s), time.Now()
	err = in16Goroutines(n, func(i int) error {
		for range times / n {
			done, err := db.Exec(statement, fmt.Sprint("job ", i))
			if err != nil {
				return err
			}
			if rows, _ := done.RowsAffected(); rows != 1 {
				return fmt.Errorf("%d rows were granted", rows)
			}
		}
		return nil
	})
	took := time.Since(began)
	client, server := cpu.perCycle(times)
	return fmt.Sprintf("%.0f | %.0f, %.0f | %.0f", times/took.Seconds(), client, server, (walBytes(db)-before)/times), err
}

// in16Goroutines calls f n times, 16 at a time, and returns the first error.
func in16Goroutines(n int, f func(i int) error) (first error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	running := make(chan struct{}, 16)
	for i := range n {
		running <- struct{}{}
		all.Go(func() {
			defer func() { <-running }()
			if err := f(i); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	}
	all.Wait()
	return first
}
