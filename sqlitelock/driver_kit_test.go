package sqlitelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

var ctx = context.Background()

// file is the path of a file that is not there yet.
func file(tb testing.TB) string { return filepath.Join(tb.TempDir(), "locks.db") }

// open opens a driver that is closed when the test ends.
func open(tb testing.TB, path string, o *Options) *Driver {
	tb.Helper()
	d, err := Open(ctx, path, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// deafen takes the doorbell away, as between containers that share no network: polling
// has to do.
func deafen(d *Driver) *Driver {
	d.table.bell.close()
	return d
}

func clock() *memlock.Clock { return memlock.NewClock(time.Now()) }

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

func mustAcquire(tb testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	tb.Helper()
	g, err := d.Acquire(ctx, c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func mustQueue(tb testing.TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	var held *driver.HeldError
	if _, err := d.Acquire(ctx, c); !errors.As(err, &held) || held.Position == 0 {
		tb.Fatalf("not queued: %v", err)
	}
}

func mustRelease(tb testing.TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	if err := d.Release(ctx, lease(c)); err != nil {
		tb.Fatal(err)
	}
}

func cycle(tb testing.TB, d driver.Driver, name string) {
	c := mutex(name)
	mustAcquire(tb, d, c)
	mustRelease(tb, d, c)
}

// listen collects the signals of a driver.
func listen(tb testing.TB, d *Driver) <-chan driver.Signal {
	heard := make(chan driver.Signal, 100)
	tb.Cleanup(d.Listen(func(s driver.Signal) { heard <- s }))
	return heard
}

func hear(tb testing.TB, heard <-chan driver.Signal) driver.Signal {
	tb.Helper()
	select {
	case s := <-heard:
		return s
	case <-time.After(5 * time.Second):
		tb.Fatal("no signal came")
		return driver.Signal{}
	}
}

// ask runs a query that answers with a number, on the driver's own connection.
func ask(tb testing.TB, d *Driver, sql string) int64 {
	tb.Helper()
	var v any
	err := d.table.read(ctx, func(r *reader) (err error) {
		v, err = r.value(sql)
		return err
	})
	n, ok := v.(int64)
	if err != nil || !ok {
		tb.Fatalf("%s: %v, %v", sql, v, err)
	}
	return n
}

// rows counts the names that are remembered.
func rows(tb testing.TB, d *Driver) int64 {
	tb.Helper()
	return ask(tb, d, "SELECT count(*) FROM entries")
}
