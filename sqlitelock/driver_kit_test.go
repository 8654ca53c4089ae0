package sqlitelock

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/memlock"
)

// asDriver converts the driver of New or Open to its own type, which has all its methods.
var asDriver = servertest.As[*lockDriver]

var ctx = context.Background()

// hangTime bounds waits that end within seconds unless the driver hangs. The machine may
// stand still for a part of it.
const hangTime = 3 * time.Minute

// patientCtx returns a ctx whose requests do not give up while the machine stands still.
func patientCtx(tb testing.TB) context.Context { return servertest.Within(tb, hangTime) }

// newPath returns the path of a file that does not exist yet.
func newPath(tb testing.TB) string { return filepath.Join(tb.TempDir(), "locks.db") }

// open opens a driver that is closed when the test ends.
func open(tb testing.TB, path string, o *Options) *lockDriver {
	tb.Helper()
	d, err := asDriver(OpenFile(ctx, path, o))
	noError(tb, err)
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// withoutWakeUps closes the wakeSocket, so that the driver has to poll, as between
// containers that share no network.
func withoutWakeUps(d *lockDriver) *lockDriver {
	d.table.socket.close()
	return d
}

func clock() *memlock.Clock { return memlock.NewClock(time.Now()) }

var (
	isRefused       = servertest.Waits
	mutex           = servertest.Mutex
	queued          = servertest.Queued
	lease           = servertest.Lease
	gets            = servertest.Gets
	releases        = servertest.Releases
	wantDriverError = servertest.WantDriverError
	listen          = servertest.Listen
	cycle           = servertest.Cycle
	wantHigherFence = servertest.Rises
	begin           = servertest.Begin
	runSQL          = servertest.Exec
)

// wantSignal checks the kind and the token of the next signal, and returns the signal.
func wantSignal(tb testing.TB, signals <-chan driver.Signal, kind driver.SignalKind, token driver.Token) driver.Signal {
	tb.Helper()
	eventually(tb, "the driver sends a signal", func() bool { return len(signals) > 0 })
	s := <-signals
	if s.Kind != kind || s.Token != token {
		tb.Fatalf("got the signal %+v; want kind %d, token %v", s, kind, token)
	}
	return s
}

// queryInt runs a query of one number on the driver's own connection.
func queryInt(tb testing.TB, d *lockDriver, sql string) int64 {
	tb.Helper()
	var v any
	err := d.table.read(ctx, func(c *conn) (err error) {
		v, err = c.value(sql)
		return err
	})
	n, ok := v.(int64)
	if err != nil || !ok {
		tb.Fatalf("%s: %v, %v; want a number", sql, v, err)
	}
	return n
}

// countNames returns the number of names in the file.
func countNames(tb testing.TB, d *lockDriver) int64 {
	tb.Helper()
	return queryInt(tb, d, "SELECT count(*) FROM entries")
}
