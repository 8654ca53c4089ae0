package postgreslock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/postgreslock"
)

// start opens a driver that is closed when the test ends.
func start(t testing.TB, url string) *postgreslock.Driver {
	t.Helper()
	d := open(t, url)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// mutex is a claim for all of a name.
func mutex(name string) driver.Claim {
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242},
		Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: 30 * time.Second, QueueTTL: 15 * time.Second,
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

func waits(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	if _, err := d.Acquire(ctx, c); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("Acquire: %v; want it to wait", err)
	}
}

func renews(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
	if err != nil || answers[0] != nil {
		t.Fatalf("Renew: %v, %v; want it held", answers, err)
	}
}

func releases(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	if err := d.Release(ctx, lease(c)); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// listen collects the signals of a driver.
func listen(t testing.TB, d *postgreslock.Driver) <-chan driver.Signal {
	heard := make(chan driver.Signal, 1000)
	t.Cleanup(d.Listen(func(s driver.Signal) { heard <- s }))
	return heard
}

// hear waits for a signal of this kind for this token, and says how long it took.
func hear(t testing.TB, heard <-chan driver.Signal, kind driver.SignalKind, token driver.Token) time.Duration {
	t.Helper()
	began, patience := time.Now(), time.After(20*time.Second)
	for {
		select {
		case s := <-heard:
			if s.Kind == kind && s.Token == token {
				return time.Since(began)
			}
		case <-patience:
			t.Fatalf("no signal of kind %d came", kind)
		}
	}
}

// conn is a connection of somebody else's.
func conn(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) })
	return c
}

func exec(t testing.TB, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to pass: %s", what)
		}
	}
}
