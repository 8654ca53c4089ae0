package etcdlock_test

import (
	"context"
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

// start is open, and closes the driver with the test.
func start(t testing.TB, url string) *etcdlock.Driver {
	t.Helper()
	d := open(t, url)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// slow opens a driver whose requests can be held up.
func slow(t testing.TB, c *etcdtest.Cluster, prefix string) (driver.Driver, func() func()) {
	t.Helper()
	p := redistest.StartProxy(t, &redistest.Server{Addr: c.Members[0].Addr})
	return open(t, "etcd://"+p.Addr+"/"+prefix), p.Hold
}

// uses uses the clock all the time, as a busy process does. Beside a hundred clients that
// come and go, each of them the clock's keeper for a moment, it would lose a tenth.
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
