package servertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// StandsStill pauses the server while a name is held. No call may take longer than its
// ctx, and the client must notify the holder before its lease ends. After the pause, the
// server must not keep a grant for a claim that has ended.
func StandsStill(tb TB, holder, other driver.Driver, pause, resume func()) {
	tb.Helper()
	const ttl = 4 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // only a hang takes so long
	defer cancel()
	held, err := Client(tb, holder).Mutex("job", pawl.WithTTL(ttl)).Lock(ctx)
	if err != nil {
		tb.Fatalf("Lock: %v", err)
	}
	Gets(tb, other, Mutex("warm"))
	pause()
	tb.Cleanup(resume)
	paused := time.Now()
	for what, call := range map[string]func(ctx context.Context) error{
		"Acquire of a held name": func(ctx context.Context) error { _, err := other.Acquire(ctx, Queued("job")); return err },
		"Acquire of a new name":  func(ctx context.Context) error { _, err := other.Acquire(ctx, Mutex("another")); return err },
		"Renew": func(ctx context.Context) error {
			_, err := other.Renew(ctx, []driver.LeaseRef{Lease(Mutex("warm"))})
			return err
		},
		"Inspect": func(ctx context.Context) error { _, err := other.Inspect(ctx, "job"); return err },
	} {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		began := time.Now()
		if err := call(short); !errors.Is(err, context.DeadlineExceeded) {
			tb.Errorf("%s: %v; want DeadlineExceeded", what, err)
		}
		cancel()
		if took := time.Since(began); took > 10*time.Second { // a client waits 15 s for the end of a connection
			tb.Errorf("%s took %v with a timeout of 200 ms", what, took)
		}
	}
	select {
	case <-held.Done():
		if took := time.Since(paused); took > ttl {
			tb.Errorf("the holder was notified after %v with a TTL of %v", took, ttl)
		}
	case <-time.After(2 * ttl):
		tb.Errorf("the holder was not notified")
	}
	resume()
	resumed := time.Now()
	for _, name := range []string{"job", "another"} {
		c := Mutex(name)
		mustSucceed(tb, "Acquire after the pause", func() error {
			g, err := other.Acquire(ctx, c)
			// A grant for an ended claim would last longer.
			if errors.Is(err, driver.ErrHeld) && time.Since(resumed) < 20*time.Second {
				return driver.ErrUnavailable
			}
			if err == nil && g.Fence <= held.Fence() {
				tb.Errorf("%s: fence %d after %d", name, g.Fence, held.Fence())
			}
			return err
		})
	}
}
