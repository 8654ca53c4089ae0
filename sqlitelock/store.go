package sqlitelock

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// table is the locktable.Table over one file. It has a connection that writes, and
// another one that reads, so that reads do not queue behind writers. A goroutine polls
// for signals.
type table struct {
	path  string
	inbox string
	Options
	files *identity

	tidyEvery   int // like busyTimeout, a constant except in tests
	busyTimeout time.Duration

	writer         sharedConn // its mutex is shared by the drivers of the file
	reader         sharedConn // it only reads
	dropWriteMutex func()     // ends the use of the mutex that the writers share

	claims         *engine.Claims
	socket         *wakeSocket   // nil if this system has none
	woken          chan struct{} // has a value after a wake-up
	holdersCanWake atomic.Bool   // every holder that this driver waits for can send it wake-ups; see runTransaction
	dataVersion    any           // data_version at the last poll; only the goroutine that has the reader uses this
	lastSeen       int64         // the id of the last signal that was read; only that goroutine uses this
	replaced       bool          // the last poll found that the file is not the opened one; only the poller uses this
	deliver        func(driver.Signal)

	closing sync.Once
	life    context.Context // ends at Close
	end     context.CancelFunc
	running sync.WaitGroup
	result  error // of Close
}

// Properties implements locktable.Table.
func (t *table) Properties() driver.Properties {
	return driver.Properties{
		Backend:       "sqlite",
		Location:      backend(t.path),
		Clock:         driver.ClockHost,
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        driver.MinTTL,
		PushesGrants:  true,
		PushesChanges: true,
	}
}

// Subscribe implements locktable.Pushing. It is always up: each poll reads all signals.
func (t *table) Subscribe(f func(up bool)) (stop func()) {
	token := driver.NewToken()
	t.claims.Hold(token, "", time.Now().Add(math.MaxInt64)) // a watch costs as many polls as a lease
	f(true)
	return func() { t.claims.Drop(token) }
}

// Close implements locktable.Table. Steps under way end first; queued steps return
// ErrClosed.
func (t *table) Close() error {
	t.closing.Do(func() {
		t.end()
		t.socket.close()
		t.running.Wait()
		t.writer.drain()
		t.reader.drain()
		t.result = t.driverError("close", t.disconnect())
		t.dropWriteMutex()
	})
	return t.result
}

// disconnect closes both connections. The writer is last, because the last connection to
// the file removes the log.
func (t *table) disconnect() error { return errors.Join(t.reader.close(), t.writer.close()) }

func (t *table) now() locktable.Instant { return locktable.At(t.Options.now()) }

// busyTimeout bounds the wait for other processes when the caller's ctx has no deadline.
const busyTimeout = 10 * time.Second
