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

// table is the locktable.Table over one file: a connection that writes, a connection that
// reads, so that looking is possible while writers queue, and a goroutine that looks for
// signals.
type table struct {
	path  string
	inbox string
	Options
	files *identity

	tidyEvery   int // constants, but for tests
	busyTimeout time.Duration

	writer desk[*writer] // its gate is shared by the drivers of the file
	reader desk[*reader]
	leave  func() // the shared gate

	claims   *engine.Claims
	bell     *doorbell     // nil where there are none
	rings    chan struct{} // has room for one: it rang
	rung     atomic.Bool   // the same, until a look
	hears    atomic.Bool   // signals come with a ring; false until that is known
	replaced bool          // by the last look, the file is another one; of the poller's own
	deliver  func(driver.Signal)

	closing sync.Once
	life    context.Context // until Close
	end     context.CancelFunc
	running sync.WaitGroup
	err     error // of Close
}

// Properties implements locktable.Table.
func (t *table) Properties() driver.Properties {
	return driver.Properties{
		Backend:       "sqlite",
		Where:         backend(t.path),
		Clock:         driver.ClockHost,
		FenceSurvives: "crashes of processes and of the host, and loss of the file, as long as the clock is not set back past the last grant",
		MinTTL:        driver.MinTTL,
		Push:          true,
		PushesChanges: true,
	}
}

// Hear implements locktable.Hearing. Signals are there to be looked for at any time.
func (t *table) Hear(f func(hears bool)) (stop func()) {
	token := driver.NewToken()
	t.claims.Hold(token, "", time.Now().Add(math.MaxInt64)) // it costs as many looks as a lease
	f(true)
	return func() { t.claims.Drop(token) }
}

// Close implements locktable.Table. Steps under way end first; steps that queue are
// answered with ErrClosed.
func (t *table) Close() error {
	t.closing.Do(func() {
		t.end()
		t.bell.close()
		t.running.Wait()
		t.writer.drain()
		t.reader.drain()
		t.err = t.failed("close", t.disconnect())
		t.leave()
	})
	return t.err
}

// disconnect closes both connections. The writer is the last: the last connection of all
// tidies the log away.
func (t *table) disconnect() error { return errors.Join(t.reader.close(), t.writer.close()) }

func (t *table) now() locktable.Instant { return locktable.At(t.Options.now()) }

// busyTimeout bounds the waiting for other processes when the caller's ctx has no
// deadline.
const busyTimeout = 10 * time.Second
