package sqlitelock

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

// The test binary is also the other process of the tests that need one: see process_test.go.
func TestMain(m *testing.M) {
	if verb := os.Getenv(childVerb); verb != "" {
		child(verb)
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil { // drivertest lets many subtests wait side by side
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

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

func mustRelease(tb testing.TB, d driver.Driver, c driver.Claim) {
	tb.Helper()
	if err := d.Release(ctx, lease(c)); err != nil {
		tb.Fatal(err)
	}
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
