package sqlitelock

import (
	sqldriver "database/sql/driver"

	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
)

// Read implements locktable.Table. It waits for no writer.
func (t *table) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	var e *locktable.Entry
	err := t.read(ctx, func(c *conn) error {
		return c.snapshot(func() (err error) {
			e, err = c.entry(name)
			return err
		})
	})
	return e, t.now(), err
}

// Scan implements locktable.Table. Between two pages no read transaction is open, because
// that would prevent SQLite from restarting the log.
func (t *table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		var now locktable.Instant // the time at which the page was read
		page := func(from string, n int) (page []entryRow, err error) {
			err = t.read(ctx, func(c *conn) error {
				return c.snapshot(func() (err error) {
					page, err = c.page(from, n)
					return err
				})
			})
			now = t.now()
			return page, err
		}
		for s, err := range sqlswap.Scan(prefix, page, func(s entryRow) string { return s.name }) {
			if err == nil {
				err = t.driverError("list", s.err)
			}
			if !yield(locktable.Row{Name: s.name, Entry: s.entry, Now: now}, err) {
				return
			}
		}
	}
}

func (t *table) read(ctx context.Context, f func(c *conn) error) error {
	c, err := t.reader.enter(ctx, t.busyTimeout)
	if err != nil {
		return t.driverError("read", err)
	}
	defer t.reader.leave()
	if err := t.files.check(c); err != nil {
		return t.driverError("read", err)
	}
	return t.driverError("read", t.retry(ctx, func() error { return f(c) }))
}

// snapshot runs f in a transaction, so that f reads the tables of entries and of waiters
// at one moment.
func (c *conn) snapshot(f func() error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	return errors.Join(f(), c.exec("ROLLBACK"))
}

// entry reads an entry with all its waiters. If it cannot decode the entry, it returns an
// error, because an empty entry would be a free name.
func (c *conn) entry(name string) (*locktable.Entry, error) {
	stored, err := c.storedEntry(name)
	if err != nil || len(stored) == 0 {
		return &locktable.Entry{}, err
	}
	e, err := locktable.Decode(stored)
	if err != nil {
		return nil, fmt.Errorf("the row of %s: %w", quote(name), err)
	}
	return e, c.addWaiters(name, e)
}

// page reads up to n entries with all their waiters, beginning at the name from.
func (c *conn) page(from string, n int) ([]entryRow, error) {
	page, err := c.rows(from, n)
	for i := range page {
		if err == nil && page[i].err == nil {
			page[i].err = c.addWaiters(page[i].name, page[i].entry)
		}
	}
	return page, err
}

// entryRow is a row of the table of entries.
type entryRow struct {
	name  string
	entry *locktable.Entry
	err   error // not nil if the entry cannot be decoded
}

// rows reads up to n rows, beginning at the name from.
func (c *conn) rows(from string, n int) ([]entryRow, error) {
	if from == "" {
		from = "\x00" // an empty blob would be NULL; no name begins with a control character
	}
	var out []entryRow
	err := c.forEachRow("SELECT name, entry FROM entries WHERE name >= ? ORDER BY name LIMIT ?", func(row []sqldriver.Value) {
		name, _ := row[0].([]byte)
		stored, _ := row[1].([]byte) // empty if an operator has changed the column's type
		r := entryRow{name: string(name)}
		if r.entry, r.err = locktable.Decode(stored); r.err != nil {
			r.err = fmt.Errorf("the row of %s: %w", quote(r.name), r.err)
		}
		out = append(out, r)
	}, []byte(from), int64(n))
	return out, err
}
