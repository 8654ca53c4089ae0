package mysqllock_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/mysqllock"
)

// fresh is a database of its own in the shared server, a pool for it, and a driver over
// that.
func fresh(t testing.TB) (*mysqltest.Server, *sql.DB, *mysqllock.Driver) {
	t.Helper()
	s := mysqltest.Shared(t)
	db := s.Open(t, s.NewDatabase(t))
	return s, db, over(t, db, nil)
}

// over makes a driver that is closed when the test ends.
func over(t testing.TB, db *sql.DB, o *mysqllock.Options) *mysqllock.Driver {
	t.Helper()
	d, err := mysqllock.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// start opens a driver that is closed when the test ends.
func start(t testing.TB, url string) *mysqllock.Driver {
	t.Helper()
	d, err := mysqllock.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// name is that of a pool's database.
func name(t testing.TB, db *sql.DB) (database string) {
	t.Helper()
	if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	return database
}

// mutex is a claim for all of a name.
func mutex(name string) driver.Claim {
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242},
		Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second, QueueTTL: 5 * time.Second,
	}
}

// queued is a claim that takes a place in the queue.
func queued(name string) driver.Claim {
	c := mutex(name)
	c.Queue = true
	return c
}

func lease(c driver.Claim) driver.LeaseRef {
	return driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
}

func gets(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := d.Acquire(ctx, c)
	if err != nil {
		t.Fatalf("Acquire: %v; want it granted", err)
	}
	return g
}

func releases(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	if err := d.Release(ctx, lease(c)); err != nil {
		t.Fatalf("Release: %v", err)
	}
}
