package mysqllock_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// A process checks whether its leases were taken only while it has any, not as long as
// they would have lasted. It does not check one that has lapsed.
func TestAProcessThatHoldsNothingAsksNothing(t *testing.T) {
	nightly(t, "a slow machine can miss its limit of 1 s")
	s := mysqltest.Start(t)
	d, root := openDriver(t, "mysql:"+s.DSN(mysqltest.Database)), s.Root(t)
	asks := func() int {
		before := statements(t, root)
		time.Sleep(1200 * time.Millisecond)
		return statements(t, root) - before - 1
	}
	c, lapses := mutex("job"), mutex("other")
	c.TTL, lapses.TTL = driver.MaxTTL, 100*time.Millisecond
	gets(t, d, c)
	gets(t, d, lapses)
	if n := asks(); n == 0 {
		t.Error("it asks nothing while it holds a lease")
	}
	releases(t, d, c)
	if n := asks(); n != 0 {
		t.Errorf("%d statements after it was released", n)
	}
}

// While a server is down, not every due poll dials it.
func TestAServerThatIsDownIsNotDialledAllTheTime(t *testing.T) {
	nightly(t, "a slow machine can miss its limit of 1 s")
	s, db, d := fresh(t)
	var down atomic.Bool
	var dials atomic.Int64
	mysql.RegisterDialContext("counted", func(ctx context.Context, addr string) (net.Conn, error) {
		dials.Add(1)
		if down.Load() {
			return nil, errors.New("nobody is there")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	defer mysql.DeregisterDialContext("counted")
	counted, err := mysqltest.OpenDSN(mysqltest.User + ":" + mysqltest.Password + "@counted(" + s.Addr + ")/" + name(t, db))
	noError(t, err)
	t.Cleanup(func() { _ = counted.Close() })
	waiting := driverOver(t, counted, nil)
	granted := make(chan driver.Signal, 1)
	defer waiting.Listen(func(s driver.Signal) { granted <- s })()
	held, waits := mutex("job"), queued("job")
	waits.QueueTTL = time.Minute
	gets(t, d, held)
	isRefused(t, waiting, waits)
	counted.SetMaxIdleConns(0) // so that each look dials
	down.Store(true)
	before := dials.Load()
	time.Sleep(time.Second)
	if n := dials.Load() - before; n == 0 || n > 20 {
		t.Errorf("%d dials in a second", n)
	}
	down.Store(false)
	releases(t, d, held)
	select {
	case s := <-granted:
		if s.Kind != driver.SignalGranted || s.Token != waits.Token {
			t.Errorf("%+v", s)
		}
	case <-time.After(10 * time.Second):
		t.Error("it was not told of its grant")
	}
}
