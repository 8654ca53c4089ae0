package sqlitelock

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-go/pawl/driver"
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

	tidyEvery int // constants, but for tests
	patience  time.Duration

	writer desk[*writer] // its gate is shared by the drivers of the file
	reader desk[*reader]
	leave  func() // the shared gate

	watch   *watch
	bell    *doorbell // nil where there are none
	deliver func(driver.Signal)

	closing sync.Once
	closed  chan struct{} // closed by Close
	running sync.WaitGroup
	err     error // of Close
}

func openTable(ctx context.Context, path string, o Options, inbox string) (*table, error) {
	real, err := makeFile(path, o.MustExist)
	if err != nil {
		return nil, err
	}
	t := &table{
		path: real, inbox: inbox, Options: o, tidyEvery: tidyEvery, patience: patience,
		watch: newWatch(), closed: make(chan struct{}),
	}
	var shared gate
	shared, t.leave = writing.join(real)
	t.writer = desk[*writer]{gate: shared, closed: t.closed}
	t.reader = desk[*reader]{gate: newGate(), closed: t.closed}
	if err := t.connect(ctx); err != nil {
		err = errors.Join(err, t.disconnect())
		t.leave()
		if cannotWrite(err) {
			if folder := writable(filepath.Dir(real)); folder != nil { // then this says it more clearly
				return nil, fileError(real, "its folder has to be writable, for SQLite's -wal and -shm: look at owner, mode and mount", folder)
			}
		}
		return nil, t.failed("open", err)
	}
	return t, nil
}

// settling is how long the companions may take to get their owner and mode.
const settling = time.Second

// connect opens both connections. SQLite makes the companions with the mode that the
// umask leaves, and gives them the file's a moment later. A process of another user that
// opens them in between cannot, or gets companions that it can only read, and keeps them
// for as long as it has any connection. So it has none while it waits.
func (t *table) connect(ctx context.Context) error {
	for began, n := time.Now(), 0; ; n++ {
		err := t.retry(ctx, t.connectOnce)
		if !cannotWrite(err) || time.Since(began) > settling || writable(filepath.Dir(t.path)) != nil {
			return err
		}
		if err := t.disconnect(); err != nil {
			return err
		}
		if t.pause(ctx, atOnce+n) != nil {
			return err
		}
	}
}

func cannotWrite(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CANTOPEN || c == sqlite3.SQLITE_READONLY
}

// connectOnce makes one attempt, and finds out that the writer can write. The first that
// opens the file after a crash recovers it, and keeps the others busy for that long.
func (t *table) connectOnce() error {
	if err := t.disconnect(); err != nil { // what a busy attempt left
		return err
	}
	w, err := t.writer.open(openWriter, t.path)
	if err != nil {
		return err
	}
	if err = w.transaction(func() error { return nil }); err != nil {
		return err
	}
	r, err := t.reader.open(openReader, t.path)
	if err != nil {
		return err
	}
	page, err := r.value("PRAGMA page_size")
	if err != nil {
		return err
	}
	size, _ := page.(int64)
	if t.files, err = identify(t.path, size); err != nil {
		return err
	}
	return t.files.check(r.conn)
}

// start begins to look for signals, and hands them to deliver.
func (t *table) start(deliver func(driver.Signal)) {
	t.deliver = deliver
	t.bell = newDoorbell(t.inbox)
	t.running.Go(func() { t.bell.listen(t.watch.ring) })
	t.running.Go(t.poll)
}

// Properties implements locktable.Table.
func (t *table) Properties() driver.Properties {
	return driver.Properties{
		Backend:       "sqlite",
		Where:         backend(t.path),
		Clock:         "host",
		FenceSurvives: "crashes of processes and of the host, and loss of the file, as long as the clock is not set back past the last grant",
		MinTTL:        driver.MinTTL,
		Push:          true,
		PushesChanges: true,
	}
}

// Hear implements locktable.Hearing. Signals are there to be looked for at any time.
func (t *table) Hear(f func(hears bool)) (stop func()) {
	t.watch.follow(true)
	f(true)
	return func() { t.watch.follow(false) }
}

// Close implements locktable.Table. Steps under way end first; steps that queue are
// answered with ErrClosed.
func (t *table) Close() error {
	t.closing.Do(func() {
		close(t.closed)
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

// now is the backend's time.
func (t *table) now() locktable.Instant { return locktable.At(t.Now()) }

// patience bounds the waiting for other processes when the caller's ctx has no deadline.
const patience = 10 * time.Second
