package sqlitelock

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

func init() { engine.Register(openURL, "sqlite") }

type lockDriver struct {
	engine.TrackedAll
	table *table
}

// Open opens the file of a URL. It creates a missing file, unless the URL has
// create=false. The package comment has the forms. The error is a [*driver.InvalidError]
// or a [*driver.Error]. ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

// OpenFile is [Open] for a path and options.
func OpenFile(ctx context.Context, path string, o *Options) (driver.Driver, error) {
	if err := engine.CheckContext(ctx); err != nil {
		return nil, err
	}
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := openTable(ctx, path, options, rand.Text()[:16])
	if err != nil {
		return nil, err
	}
	d := &lockDriver{engine.NewTrackedAll(locktable.NewGrouped(t, t.inbox), t.claims, nil), t}
	t.start(d.Deliver)
	return d, nil
}

func openURL(ctx context.Context, u *url.URL) (driver.Driver, error) {
	path, o, err := parseURL(u)
	if err != nil {
		return nil, err
	}
	return OpenFile(ctx, path, o)
}

func openTable(ctx context.Context, path string, o Options, inbox string) (*table, error) {
	real, err := makeFile(path, o.MustExist)
	if err != nil {
		return nil, err
	}
	t := &table{
		path: real, inbox: inbox, Options: o, tidyEvery: tidyEvery, busyTimeout: busyTimeout,
		claims: engine.NewClaims(), woken: make(chan struct{}, 1),
	}
	t.life, t.end = context.WithCancel(context.Background())
	t.writer.closed = t.life.Done()
	t.writer.mutex, t.dropWriteMutex = useWriteMutex(real)
	t.reader = sharedConn{mutex: make(chan struct{}, 1), closed: t.life.Done()}
	if err := t.connect(ctx); err != nil {
		t.end()
		err = errors.Join(err, t.disconnect())
		t.dropWriteMutex()
		if cannotWrite(err) {
			if folderErr := checkWritable(filepath.Dir(real)); folderErr != nil { // clearer than SQLite's error
				return nil, fileError(real, "its folder has to be writable, because SQLite creates the -wal and -shm there: look at owner, mode and mount", folderErr)
			}
		}
		return nil, t.driverError("open", err)
	}
	return t, nil
}

// companionTimeout bounds the wait until SQLite has set the companions' mode. Tests set a
// longer time.
var companionTimeout = time.Second

// connect opens both connections. SQLite creates the companions with a mode from the
// umask, and sets the file's mode a moment later. If a process of another user opens the
// companions in between, it fails, or can only read them until it has closed all its
// connections. So connect closes its connections before it retries.
func (t *table) connect(ctx context.Context) error {
	for began, n := time.Now(), 0; ; n++ {
		err := t.retrySlowly(ctx, t.openWriter)
		if err == nil {
			// The check that the writer can write is separate from opening, because
			// opening is slow, and only quick tries find a busy file free. After a
			// crash, the first process that opens the file recovers it, and meanwhile it
			// is busy for the others.
			err = t.retry(ctx, func() error { return t.writer.conn.transaction(func() error { return nil }) })
		}
		if err == nil {
			err = t.retrySlowly(ctx, t.openReader)
		}
		if !cannotWrite(err) || time.Since(began) > companionTimeout || checkWritable(filepath.Dir(t.path)) != nil {
			return err
		}
		if err := t.disconnect(); err != nil {
			return err
		}
		if t.pause(ctx, immediateTries+n) != nil {
			return err
		}
	}
}

func cannotWrite(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CANTOPEN || c == sqlite3.SQLITE_READONLY
}

func (t *table) openWriter() error {
	if err := t.disconnect(); err != nil { // close the connections of a busy attempt
		return err
	}
	c, err := connect(t.path)
	if err != nil {
		return err
	}
	t.writer.conn = c // after an error, disconnect closes it
	if err := c.script(settings); err != nil {
		return err
	}
	return ensureSchema(c)
}

func (t *table) openReader() error {
	if err := t.reader.close(); err != nil { // close the connection of a busy attempt
		return err
	}
	c, err := connect(t.path)
	if err != nil {
		return err
	}
	t.reader.conn = c
	if err := c.script(settings + "PRAGMA query_only = ON;"); err != nil {
		return err
	}
	last, err := c.value("SELECT coalesce(max(id), 0) FROM signals")
	if err != nil {
		return err
	}
	t.lastSeen = integer(last)
	page, err := c.value("PRAGMA page_size")
	if err != nil {
		return err
	}
	if t.files, err = identify(t.path, integer(page)); err != nil {
		return err
	}
	return t.files.check(c)
}

// start begins to poll for signals, and passes them to deliver.
func (t *table) start(deliver func(driver.Signal)) {
	t.deliver = deliver
	t.socket = newWakeSocket(t.inbox)
	t.running.Go(func() { t.socket.listen(t.recordWakeup) })
	t.running.Go(func() { newPoller(t).Run(t.life) })
}
