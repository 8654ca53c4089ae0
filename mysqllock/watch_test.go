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

// A driver polls for lost leases only until they are released or have expired.
func TestADriverWithoutLeasesDoesNotPoll(t *testing.T) {
	skipIfShort(t, "a slow machine can miss its limit of 1 s")
	s := mysqltest.Start(t)
	d, root := openDriver(t, "mysql:"+s.DSN(mysqltest.Database)), s.Root(t)
	countPolls := func() int {
		before := countStatements(t, root)
		time.Sleep(1200 * time.Millisecond)
		return countStatements(t, root) - before - 1
	}
	c, short := mutex("job"), mutex("other")
	c.TTL, short.TTL = driver.MaxTTL, 100*time.Millisecond
	gets(t, d, c)
	gets(t, d, short)
	if n := countPolls(); n == 0 {
		t.Error("the driver does not poll while it holds a lease")
	}
	releases(t, d, c)
	if n := countPolls(); n != 0 {
		t.Errorf("%d statements after the release, want none", n)
	}
}

// While a server is down, the driver polls less often, and so dials less often.
func TestADriverSeldomDialsAServerThatIsDown(t *testing.T) {
	skipIfShort(t, "a slow machine can miss its limit of 1 s")
	s, db, d := freshDatabase(t)
	var down atomic.Bool
	var dials atomic.Int64
	mysql.RegisterDialContext("counted", func(ctx context.Context, addr string) (net.Conn, error) {
		dials.Add(1)
		if down.Load() {
			return nil, errors.New("the server is down")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	defer mysql.DeregisterDialContext("counted")
	counted := mysqltest.OpenDSN(t, mysqltest.User+":"+mysqltest.Password+"@counted("+s.Addr+")/"+databaseOf(t, db))
	other := driverOver(t, counted, nil)
	signals := listen(t, other)
	held, waiter := mutex("job"), queued("job")
	gets(t, d, held)
	isRefused(t, other, waiter)
	counted.SetMaxIdleConns(0) // each poll then dials
	down.Store(true)
	before := dials.Load()
	time.Sleep(time.Second)
	if n := dials.Load() - before; n == 0 || n > 20 {
		t.Errorf("%d dials in a second, want 1 to 20", n)
	}
	down.Store(false)
	releases(t, d, held)
	if took := wantSignal(t, signals, driver.SignalGranted, waiter.Token); took > 10*time.Second {
		t.Errorf("the waiter got the signal of its grant after %v", took)
	}
}
