package sqltable

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-go/pawl/locktable"
)

// Read implements locktable.Table.
func (t *Table) Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	all, err := t.rows(ctx, Statement{SQL: t.sql.read, Args: []any{[]byte(name)}})
	if err != nil {
		return nil, 0, t.failed(ctx, err)
	}
	if len(all) > 0 {
		e, err := all[0].entry()
		return e, all[0].now, err
	}
	now, err := t.ask(ctx, t.db)
	return &locktable.Entry{}, now, t.failed(ctx, err)
}

// scanPage is how many entries are read at once: a caller may take its time with them.
const scanPage = 256

// Scan implements locktable.Table.
func (t *Table) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		from := prefix
		for {
			page, err := t.rows(ctx, Statement{SQL: t.sql.page, Args: []any{[]byte(from), scanPage}})
			if err != nil {
				yield(locktable.Row{}, t.failed(ctx, err))
				return
			}
			for _, r := range page {
				if r.name == from && from != prefix {
					continue // it was the last of the page before
				}
				if !strings.HasPrefix(r.name, prefix) {
					return
				}
				e, err := r.entry()
				if !yield(locktable.Row{Name: r.name, Entry: e, Now: r.now}, err) || err != nil {
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

// seen is what was read of a name.
type seen struct {
	name    string
	stored  []byte
	now     locktable.Instant
	waiters [][]byte
}

// rows reads entries with their waiters. It is one statement, so both are as they were at
// one moment.
func (t *Table) rows(ctx context.Context, s Statement) (all []*seen, err error) {
	err = t.db.Query(ctx, s, func(scan Scan) error {
		r := &seen{}
		var name, waiter []byte
		var now int64
		if err := scan(&name, &r.stored, &now, &waiter); err != nil {
			return err
		}
		r.name, r.now = string(name), locktable.Instant(now)
		if n := len(all); n == 0 || all[n-1].name != r.name {
			all = append(all, r)
		}
		if waiter != nil {
			last := all[len(all)-1]
			last.waiters = append(last.waiters, waiter)
		}
		return nil
	})
	return all, err
}

// entry is what was read, with all who wait.
func (s *seen) entry() (*locktable.Entry, error) {
	e, err := locktable.Decode(s.stored)
	if err != nil {
		return nil, fmt.Errorf("the row of %.80q: %w", s.name, err)
	}
	if e.Rest.Len == 0 {
		return e, nil // rows of waiters are from an entry that somebody deleted
	}
	if len(s.waiters) != e.Rest.Len {
		return nil, fmt.Errorf("the row of %.80q: %w", s.name, &locktable.CorruptError{
			Problem: fmt.Sprintf("%d wait, and there are rows of %d", e.Rest.Len, len(s.waiters)),
		})
	}
	for _, stored := range s.waiters {
		w, err := locktable.DecodeWaiter(stored)
		if err != nil {
			return nil, fmt.Errorf("those who wait for %.80q: %w", s.name, err)
		}
		e.Queue = append(e.Queue, w)
	}
	e.Rest = locktable.Rest{}
	return e, nil
}
