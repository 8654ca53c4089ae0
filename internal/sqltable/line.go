package sqltable

import (
	"fmt"
	"math"

	"github.com/pawl-go/pawl/locktable"
)

// line is the waiters of a long queue, in rows of their own. The columns that a waiter is
// found by are in its stored form, too, which is what counts. The place of a waiter is by
// since, and then by id: a new row gets one above all others, for the row of the name is
// locked.
type line struct{ *work }

// Lapse implements locktable.Rows.
func (l *line) Lapse(name string, now locktable.Instant) (gone int, next, last locktable.Instant, err error) {
	if gone, err = l.change(l.table.sql.lapse, -1, []byte(name), int64(now)); err != nil {
		return 0, 0, 0, err
	}
	err = l.tx.Query(l.ctx, Statement{SQL: l.table.sql.ends, Args: []any{[]byte(name)}}, func(scan Scan) error {
		return scan((*int64)(&next), (*int64)(&last))
	})
	return gone, next, last, err
}

// Look implements locktable.Rows.
func (l *line) Look(name string, k locktable.Look) (s locktable.Sight, err error) {
	if k.First > 0 {
		if s.First, _, err = l.waiters(name, l.table.sql.first, []byte(name), int64(k.First)); err != nil {
			return s, err
		}
	}
	if k.Token.IsZero() {
		return s, nil
	}
	own, ids, err := l.waiters(name, l.table.sql.own, []byte(name), k.Token[:])
	if err != nil {
		return s, err
	}
	since, id := int64(k.Came), int64(math.MaxInt64)
	if len(own) > 0 {
		s.Own, since, id = &own[0], int64(own[0].Since), ids[0]
	}
	if k.Rank && (s.Own != nil || k.Early) {
		ahead := Statement{SQL: l.table.sql.ahead, Args: []any{[]byte(name), since, []byte(name), since, id}}
		err = l.tx.Query(l.ctx, ahead, func(scan Scan) error { return scan(&s.Ahead) })
	}
	return s, err
}

// Move implements locktable.Rows.
func (l *line) Move(name string, m locktable.Moves) error {
	for _, x := range m.Left {
		if _, err := l.change(l.table.sql.leave, 1, []byte(name), x.Token[:]); err != nil {
			return err
		}
	}
	for _, x := range m.Kept {
		if _, err := l.change(l.table.sql.keep, 1, int64(x.Expires), x.Append(nil), []byte(name), x.Token[:]); err != nil {
			return err
		}
	}
	for _, x := range m.Joined {
		_, err := l.change(l.table.sql.join, 1, []byte(name), x.Token[:], int64(x.Since), int64(x.Expires), x.Append(nil))
		if err != nil {
			return err
		}
	}
	return nil
}

// change runs a statement that has to change so many rows; -1 is any number.
func (l *line) change(sql string, want int, args ...any) (int, error) {
	n, err := l.tx.Exec(l.ctx, Statement{SQL: sql, Args: args})
	if err == nil && want >= 0 && n != want {
		err = &locktable.CorruptError{Problem: fmt.Sprintf("%d rows of one waiter", n)}
	}
	l.moved = l.moved || n > 0
	return n, err
}

// waiters reads rows of waiters, and their ids.
func (l *line) waiters(name, sql string, args ...any) (out []locktable.Waiter, ids []int64, err error) {
	err = l.tx.Query(l.ctx, Statement{SQL: sql, Args: args}, func(scan Scan) error {
		var id int64
		var stored []byte
		if err := scan(&id, &stored); err != nil {
			return err
		}
		w, err := locktable.DecodeWaiter(stored)
		if err != nil {
			return fmt.Errorf("row %d of those who wait for %.80q: %w", id, name, err)
		}
		out, ids = append(out, w), append(ids, id)
		return nil
	})
	return out, ids, err
}
