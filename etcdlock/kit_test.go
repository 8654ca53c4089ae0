package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// Short names for the helpers of all tests.
var (
	noError     = basictest.NoError
	skipIfShort = basictest.SkipIfShort
	until       = basictest.Until
	mutex       = servertest.Mutex
	queued      = servertest.Queued
	lease       = servertest.Lease
	rises       = servertest.Rises
	open        = servertest.Open[*etcdlock.Driver]

	openDriver = servertest.OpenDriver[*etcdlock.Driver]
)

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

var asDriver = servertest.As[*etcdlock.Driver] // converts the driver of New or Open to its concrete type

var ctx = context.Background()

// client opens a client that is closed with the test.
func client(t testing.TB, addrs ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hangTime is the longest time that a test waits for an expected event. Only a hang takes
// so long.
const hangTime = 3 * time.Minute

// prefixes counts the prefixes that tests use on the shared server.
var prefixes atomic.Int64

// ownPrefix returns the URL of a prefix that no other test uses, and its server. A test
// that damages the server, or counts its work, starts one of its own.
func ownPrefix(t testing.TB) (url, prefix string, c *etcdtest.Cluster) {
	t.Helper()
	c = etcdtest.Shared(t)
	prefix = fmt.Sprint("place", prefixes.Add(1))
	return c.URL() + "/" + prefix, prefix, c
}

// keepClockBusy opens a driver that uses the clock all the time, as a busy process does.
// Otherwise a hundred short-lived clients would write the ticks, and the clock would lose
// a tenth of its time.
func keepClockBusy(t testing.TB, url string) *etcdlock.Driver {
	t.Helper()
	d := openDriver(t, url)
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
				_, _ = d.Inspect(ctx, "x")
			}
		}
	}()
	return d
}

// brief returns a ctx for one call. Its timeout is longer than a pause of the machine.
func brief(t testing.TB) context.Context { return servertest.Within(t, 30*time.Second) }

// retry repeats a step while the server cannot be reached, as in a test of faults.
func retry(t testing.TB, step func(ctx context.Context) error) (err error) {
	t.Helper()
	for range 20 {
		if err = step(brief(t)); !errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// gets fails the test unless the claim is granted.
func gets(t testing.TB, d driver.Driver, c driver.Claim) (g driver.Grant) {
	t.Helper()
	if err := retry(t, func(ctx context.Context) (err error) { g, err = d.Acquire(ctx, c); return err }); err != nil {
		t.Fatalf("Acquire: %v; want it granted", err)
	}
	return g
}

// refused fails the test unless the claim is refused with ErrHeld.
func refused(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	if err := retry(t, func(ctx context.Context) error { _, err := d.Acquire(ctx, c); return err }); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("Acquire: %v; want ErrHeld", err)
	}
}

// keeps fails the test unless the lease is renewed.
func keeps(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	if err := retry(t, func(ctx context.Context) error {
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
		return errors.Join(append(answers, err)...)
	}); err != nil {
		t.Fatalf("Renew: %v", err)
	}
}

func releases(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	err := retry(t, func(ctx context.Context) error { return d.Release(ctx, lease(c)) })
	if err != nil && !errors.Is(err, driver.ErrNoSuchLease) {
		t.Fatalf("Release: %v", err)
	}
}

func cycle(t testing.TB, d driver.Driver, name string) driver.Grant {
	t.Helper()
	c := mutex(name)
	g := gets(t, d, c)
	releases(t, d, c)
	return g
}

// signalsFor returns a channel of the signals about a token. A watch that begins again
// may lose a signal; the client then sends a SignalRetry to all waiters.
func signalsFor(t testing.TB, d *etcdlock.Driver, token driver.Token) <-chan driver.Signal {
	t.Helper()
	all := make(chan driver.Signal, 100)
	t.Cleanup(d.Listen(func(s driver.Signal) {
		if s.Token == token || s.Kind == driver.SignalRetry && s.Token.IsZero() {
			select {
			case all <- s:
			default:
			}
		}
	}))
	return all
}

// awaitGrantSignal waits for a signal that the claim was granted, or may have been.
func awaitGrantSignal(t testing.TB, signals <-chan driver.Signal) {
	t.Helper()
	for {
		select {
		case s := <-signals:
			if s.Kind == driver.SignalGranted || s.Kind == driver.SignalRetry {
				return
			}
		case <-time.After(hangTime):
			t.Fatal("no signal of the grant")
		}
	}
}

// startProxy starts a proxy in front of the first member.
func startProxy(t testing.TB, c *etcdtest.Cluster) *servertest.Proxy {
	t.Helper()
	return servertest.StartProxy(t, c.Members[0].Addr)
}
