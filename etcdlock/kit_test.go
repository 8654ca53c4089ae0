package etcdlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/redistest"
)

var ctx = context.Background()

// client opens a client that is closed with the test.
func client(t testing.TB, addrs ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func open(t testing.TB, url string) *etcdlock.Driver {
	t.Helper()
	d, err := etcdlock.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// start opens a driver that is closed with the test.
func start(t testing.TB, url string) *etcdlock.Driver {
	t.Helper()
	d := open(t, url)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// uses uses the clock all the time, as a busy process does. Otherwise a hundred clients
// that come and go would each keep the clock for a moment, and it would lose a tenth.
func uses(t testing.TB, url string) {
	t.Helper()
	d := start(t, url)
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
}

func mutex(name string) driver.Claim {
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited,
		TTL: 30 * time.Second, QueueTTL: 30 * time.Second,
	}
}

func queued(c driver.Claim) driver.Claim {
	c.Queue = true
	return c
}

func lease(c driver.Claim) driver.LeaseRef {
	return driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL}
}

// brief bounds one call.
func brief(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// gets wants the claim to be granted. On bad days it asks again for a while.
func gets(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	var err error
	for range 20 {
		var g driver.Grant
		if g, err = d.Acquire(brief(t), c); err == nil {
			return g
		}
		if !errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Acquire: %v; want it granted", err)
	return driver.Grant{}
}

// refused wants the claim to be refused, because other clients hold the name.
func refused(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	var err error
	for range 20 {
		if _, err = d.Acquire(brief(t), c); errors.Is(err, driver.ErrHeld) {
			return
		}
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Acquire: %v; want ErrHeld", err)
}

func keeps(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	var err error
	for range 20 {
		var each []error
		if each, err = d.Renew(brief(t), []driver.LeaseRef{lease(c)}); err == nil {
			err = each[0]
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("Renew: %v", err)
	}
}

func releases(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	var err error
	for range 20 {
		if err = d.Release(brief(t), lease(c)); err == nil || errors.Is(err, driver.ErrNotHeld) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Release: %v", err)
}

// hears returns a channel of the signals about a token.
func hears(t testing.TB, d *etcdlock.Driver, token driver.Token) <-chan driver.Signal {
	t.Helper()
	all := make(chan driver.Signal, 100)
	t.Cleanup(d.Listen(func(s driver.Signal) {
		if s.Token == token {
			select {
			case all <- s:
			default:
			}
		}
	}))
	return all
}

// hearsOfGrant wants the signal that the claim was granted.
func hearsOfGrant(t testing.TB, heard <-chan driver.Signal) {
	t.Helper()
	for {
		select {
		case s := <-heard:
			if s.Kind == driver.SignalGranted {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no signal of the grant")
		}
	}
}

// proxy starts a proxy before the first member.
func proxy(t testing.TB, c *etcdtest.Cluster) *redistest.Proxy {
	t.Helper()
	return redistest.StartProxy(t, &redistest.Server{Addr: c.Members[0].Addr})
}
