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

// asDriver converts the driver of New or Open to its own type, with all that it can do.
var asDriver = servertest.As[*lockDriver]

var ctx = context.Background()

// hangTime bounds what ends within seconds, unless it hangs. A machine may stand still
// for some of these seconds.
const hangTime = 3 * time.Minute

// patient is a ctx whose requests do not give up while the machine stands still.
func patient(tb testing.TB) context.Context { return servertest.Within(tb, hangTime) }

// file is the path of a file that does not exist yet.
func file(tb testing.TB) string { return filepath.Join(tb.TempDir(), "locks.db") }

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

// deafen closes the wakeSocket, as between containers that share no network: the driver
// has to poll.
func deafen(d *lockDriver) *lockDriver {
	d.table.socket.close()
	return d
}

func clock() *memlock.Clock { return memlock.NewClock(time.Now()) }

// The steps of a test.
var (
	isRefused = servertest.Waits
	mutex     = servertest.Mutex
	queued    = servertest.Queued
	lease     = servertest.Lease
	gets      = servertest.Gets
	waits     = servertest.Waits
	releases  = servertest.Releases
	explained = servertest.Explained
	listen    = servertest.Listen
	cycle     = servertest.Cycle
)

func hear(tb testing.TB, heard <-chan driver.Signal) driver.Signal {
	tb.Helper()
	select {
	case s := <-heard:
		return s
	case <-time.After(hangTime):
		tb.Fatal("no signal came")
		return driver.Signal{}
	}
}

// ask runs a query of one number on the driver's own connection.
func ask(tb testing.TB, d *lockDriver, sql string) int64 {
	tb.Helper()
	var v any
	err := d.table.read(ctx, func(c *conn) (err error) {
		v, err = c.value(sql)
		return err
	})
	n, ok := v.(int64)
	if err != nil || !ok {
		tb.Fatalf("%s: %v, %v", sql, v, err)
	}
	return n
}

// rows counts the names in the file.
func rows(tb testing.TB, d *lockDriver) int64 {
	tb.Helper()
	return ask(tb, d, "SELECT count(*) FROM entries")
}
