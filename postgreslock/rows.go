package postgreslock

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// The waiters of a long queue have rows of their own. To find a waiter, columns repeat
// parts of its stored form; only the stored form counts. The columns since and id order
// the waiters: a new row gets the greatest id, because the row of the name is locked.

// Lapse implements locktable.Rows.
func (w *work) Lapse(name string, now locktable.Instant) (left int, next, last locktable.Instant, err error) {
	if err = w.change(w.store.sql.lapse, -1, []byte(name), int64(now)); err != nil {
		return 0, 0, 0, err
	}
	err = w.query([]any{&left, (*int64)(&next), (*int64)(&last)}, nothing, w.store.sql.ends, []byte(name))
	return left, next, last, err
}

// nothing handles the rows of a query that has one row.
func nothing() error { return nil }

// Look implements locktable.Rows.
func (w *work) Look(name string, k locktable.Look) (s locktable.Sight, err error) {
	if k.First > 0 {
		if s.First, _, err = w.waiters(name, w.store.sql.first, int64(k.First)); err != nil {
			return s, err
		}
	}
	if k.Token.IsZero() {
		return s, nil
	}
	own, ids, err := w.waiters(name, w.store.sql.own, k.Token[:])
	if err != nil {
		return s, err
	}
	since, id := int64(k.Came), int64(math.MaxInt64)
	if len(own) > 0 {
		s.Own, since, id = &own[0], int64(own[0].Since), ids[0]
	}
	if k.Rank && (s.Own != nil || k.Early) {
		err = w.query([]any{&s.Ahead}, nothing, w.store.sql.ahead, []byte(name), since, id)
	}
	return s, err
}

// Move implements locktable.Rows.
func (w *work) Move(name string, m locktable.Moves) error {
	for _, x := range m.Left {
		if err := w.change(w.store.sql.leave, 1, []byte(name), x.Token[:]); err != nil {
			return err
		}
	}
	for _, x := range m.Kept {
		if err := w.change(w.store.sql.keep, 1, []byte(name), x.Token[:], int64(x.Expires), x.Append(nil)); err != nil {
			return err
		}
	}
	for _, x := range m.Joined {
		err := w.change(w.store.sql.join, 1, []byte(name), x.Token[:], int64(x.Since), int64(x.Expires), x.Append(nil))
		if err != nil {
			return err
		}
	}
	return nil
}

// change runs a statement that has to change want rows; -1 allows any number.
func (w *work) change(sql string, want int, args ...any) error {
	n, err := w.exec(sql, args...)
	if err == nil && want >= 0 && n != want {
		err = &locktable.CorruptError{Problem: fmt.Sprintf("%d rows of one waiter", n)}
	}
	w.moved = w.moved || n > 0
	return err
}

// waiters reads rows of waiters, and their ids.
func (w *work) waiters(name, sql string, arg any) (out []locktable.Waiter, ids []int64, err error) {
	var id int64
	var stored []byte
	err = w.query([]any{&id, &stored}, func() error {
		x, err := locktable.DecodeWaiter(stored)
		if err != nil {
			return fmt.Errorf("row %d of those who wait for %.80q: %w", id, name, err)
		}
		out, ids = append(out, x), append(ids, id)
		return nil
	}, sql, []byte(name), arg)
	return out, ids, err
}

// Read implements optimistic.Transactor.
func (s *store) Read(ctx context.Context, name string) (e *locktable.Entry, now locktable.Instant, err error) {
	var all []*whole
	var at locktable.Instant
	err = s.do(ctx, func(r *request) (err error) {
		if all, err = read(r.ctx, r.conn, s.sql.read, []byte(name)); err == nil && len(all) == 0 {
			at, err = s.ask(r.ctx, r.conn)
		}
		return err
	})
	switch {
	case err != nil:
		return &locktable.Entry{}, 0, err
	case len(all) == 0:
		return &locktable.Entry{}, at, nil
	}
	e, err = all[0].entry()
	return e, all[0].now, err
}

// scanPage is the number of entries that Scan reads at once. Scan reads pages so that a
// slow caller keeps no connection.
const scanPage = 256

// Scan implements optimistic.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[optimistic.Named, error] {
	return func(yield func(optimistic.Named, error) bool) {
		for from := wholeCharacters(prefix); ; {
			var page []*whole
			err := s.do(ctx, func(r *request) (err error) {
				page, err = read(r.ctx, r.conn, s.sql.page, []byte(from), scanPage)
				return err
			})
			if err != nil {
				yield(optimistic.Named{}, err)
				return
			}
			for _, w := range page {
				if w.name < prefix || w.name == from && from != prefix {
					continue // before the prefix, or the last name of the page before
				}
				if !strings.HasPrefix(w.name, prefix) {
					return
				}
				e, err := w.entry()
				if !yield(optimistic.Named{Name: w.name, Entry: e, Now: w.now}, err) {
					return
				}
			}
			if len(page) < scanPage {
				return
			}
			from = page[len(page)-1].name
		}
	}
}

// wholeCharacters returns s up to the first byte that is not UTF-8, because the server
// refuses such bytes. No name with the prefix s comes before the result.
func wholeCharacters(s string) string {
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
			return s[:i]
		}
	}
	return s
}

// whole is a name's row with the rows of its waiters.
type whole struct {
	name    string
	stored  []byte
	now     locktable.Instant
	waiters [][]byte // the stored forms of its waiters
}

// read reads entries with their waiters in one statement, so both are from one moment.
func read(ctx context.Context, c *pgx.Conn, sql string, args ...any) (all []*whole, err error) {
	var name, stored, waiter []byte
	var now int64
	rows, _ := c.Query(ctx, sql, args...) // ForEachRow returns its error
	_, err = pgx.ForEachRow(rows, []any{&name, &stored, &now, &waiter}, func() error {
		if n := len(all); n == 0 || all[n-1].name != string(name) {
			all = append(all, &whole{name: string(name), stored: stored, now: locktable.Instant(now)})
		}
		if waiter != nil {
			last := all[len(all)-1]
			last.waiters = append(last.waiters, waiter)
		}
		return nil
	})
	return all, err
}

// entry returns the entry with all its waiters. It takes the waiters that have a row,
// whatever number the entry has, because an operator may have deleted rows.
func (w *whole) entry() (*locktable.Entry, error) {
	e, err := locktable.Decode(w.stored)
	if err != nil {
		return nil, fmt.Errorf("the row of %.80q: %w", w.name, err)
	}
	if e.Rest.Len == 0 {
		return e, nil // the rows are left from an entry that an operator deleted
	}
	for _, stored := range w.waiters {
		x, err := locktable.DecodeWaiter(stored)
		if err != nil {
			return nil, fmt.Errorf("those who wait for %.80q: %w", w.name, err)
		}
		e.Queue = append(e.Queue, x)
	}
	e.Rest = locktable.Rest{}
	return e, nil
}
