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

// The URL is sqlite:PATH, absolute or relative to the working directory. Its parameters
// are those of [Options]; create=false is MustExist.
func init() { engine.Register(openURL, "sqlite") }

// Driver is one client of a file. It implements driver.Driver, driver.Signaler,
// driver.Watcher, driver.Lister, driver.LeaseBreaker, driver.FenceRaiser,
// driver.AllAcquirer and driver.Diagnoser.
type Driver struct {
	inner engine.Noted
	table *table
}

// Open opens the file that a URL names, and makes it if there is none and it need not
// exist; the package comment has the forms. The error is a [*driver.InvalidError] or a
// [*driver.Error]. ctx bounds only the opening.
func Open(ctx context.Context, rawURL string) (*Driver, error) {
	return engine.Open(ctx, rawURL, openURL)
}

// OpenFile is [Open] for a path and options.
func OpenFile(ctx context.Context, path string, o *Options) (*Driver, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := openTable(ctx, path, options, rand.Text()[:16])
	if err != nil {
		return nil, err
	}
	d := &Driver{inner: engine.NewNoted(locktable.New(t, t.inbox), t.claims, nil), table: t}
	t.start(d.inner.Deliver)
	return d, nil
}

func openURL(ctx context.Context, u *url.URL) (*Driver, error) {
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
		claims: engine.NewClaims(), rings: make(chan struct{}, 1),
	}
	t.life, t.end = context.WithCancel(context.Background())
	var shared gate
	shared, t.leave = writing.join(real)
	t.writer = desk[*writer]{gate: shared, closed: t.life.Done()}
	t.reader = desk[*reader]{gate: newGate(), closed: t.life.Done()}
	if err := t.connect(ctx); err != nil {
		t.end()
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
	t.running.Go(func() { t.bell.listen(t.ring) })
	t.running.Go(func() { newPoller(t).Run(t.life) })
}
