package sqlitelock

import (
	sqldriver "database/sql/driver"

	"fmt"
	"math"

	"github.com/pawl-go/pawl/locktable"
)

// The columns of a waiter repeat parts of its stored form, for queries; only the stored
// form counts. The columns since and id order the waiters: a new row gets the greatest
// id.
const (
	selectFirst   = "SELECT id, waiter FROM waiters WHERE name = ? ORDER BY since, id LIMIT ?"
	selectOwn     = "SELECT id, waiter FROM waiters WHERE token = ? AND name = ?"
	countAhead    = "SELECT (SELECT count(*) FROM waiters WHERE name = ?1 AND since < ?2) + (SELECT count(*) FROM waiters WHERE name = ?1 AND since = ?2 AND id < ?3)"
	insertWaiter  = "INSERT INTO waiters (name, token, since, expires, waiter) VALUES (?, ?, ?, ?, ?)"
	updateWaiter  = "UPDATE waiters SET expires = ?, waiter = ? WHERE token = ? AND name = ?"
	deleteWaiter  = "DELETE FROM waiters WHERE token = ? AND name = ?"
	deleteLapsed  = "DELETE FROM waiters WHERE name = ? AND expires <= ?"
	selectSummary = "SELECT (SELECT count(*) FROM waiters WHERE name = ?1), (SELECT min(expires) FROM waiters WHERE name = ?1), (SELECT max(since) FROM waiters WHERE name = ?1)"
	noLimit       = math.MaxInt64 // for LIMIT
)

// Expire implements locktable.Rows.
func (c *conn) Expire(name string, now locktable.Instant) (left int, next, last locktable.Instant, err error) {
	if _, err = c.change(deleteLapsed, []byte(name), int64(now)); err != nil {
		return 0, 0, 0, err
	}
	err = c.forEachRow(selectSummary, func(row []sqldriver.Value) {
		left, next, last = int(integer(row[0])), instant(row[1]), instant(row[2])
	}, []byte(name))
	return left, next, last, err
}

func instant(column sqldriver.Value) locktable.Instant { return locktable.Instant(integer(column)) }

// Load implements locktable.Rows.
func (c *conn) Load(name string, q locktable.QueueQuery) (s locktable.QueuePart, err error) {
	if q.First > 0 {
		if s.First, _, err = c.waiters(selectFirst, name, []byte(name), int64(q.First)); err != nil {
			return s, err
		}
	}
	if q.Token.IsZero() {
		return s, nil
	}
	own, ids, err := c.waiters(selectOwn, name, q.Token[:], []byte(name))
	if err != nil {
		return s, err
	}
	since, id := q.Arrived, int64(math.MaxInt64)
	if len(own) > 0 {
		s.Own, since, id = &own[0], own[0].Since, ids[0]
	}
	if q.CountAhead && (s.Own != nil || q.CountEarlier) {
		err = c.forEachRow(countAhead, func(row []sqldriver.Value) { s.Ahead = int(integer(row[0])) }, []byte(name), int64(since), id)
	}
	return s, err
}

// Store implements locktable.Rows.
func (c *conn) Store(name string, changes locktable.QueueChanges) error {
	for _, w := range changes.Left {
		if err := c.changeWaiter(deleteWaiter, w.Token[:], []byte(name)); err != nil {
			return err
		}
	}
	for _, w := range changes.Updated {
		c.buffer = w.Append(c.buffer[:0])
		if err := c.changeWaiter(updateWaiter, int64(w.Expires), c.buffer, w.Token[:], []byte(name)); err != nil {
			return err
		}
	}
	for _, w := range changes.Joined {
		c.buffer = w.Append(c.buffer[:0])
		err := c.exec(insertWaiter, []byte(name), w.Token[:], int64(w.Since), int64(w.Expires), c.buffer)
		if err != nil {
			return err
		}
	}
	return nil
}

// changeWaiter runs a statement that changes the row of one waiter.
func (c *conn) changeWaiter(sql string, args ...sqldriver.Value) error {
	n, err := c.change(sql, args...)
	if err == nil && n != 1 {
		err = &locktable.CorruptError{Problem: fmt.Sprintf("%d rows of one waiter", n)}
	}
	return err
}

// waiters reads rows of waiters, and their ids.
func (c *conn) waiters(sql, name string, args ...sqldriver.Value) (out []locktable.Waiter, ids []int64, err error) {
	var corrupt error
	err = c.forEachRow(sql, func(row []sqldriver.Value) {
		b, _ := row[1].([]byte)
		w, err := locktable.DecodeWaiter(b)
		if err != nil && corrupt == nil {
			corrupt = fmt.Errorf("row %d of the waiters for %s: %w", integer(row[0]), quote(name), err)
		}
		out, ids = append(out, w), append(ids, integer(row[0]))
	}, args...)
	if err == nil {
		err = corrupt
	}
	return out, ids, err
}

// addWaiters adds the waiters to an entry, in a snapshot.
func (c *conn) addWaiters(name string, e *locktable.Entry) error {
	if e.Overflow.Len == 0 {
		return nil
	}
	all, _, err := c.waiters(selectFirst, name, []byte(name), int64(noLimit))
	if err == nil && len(all) != e.Overflow.Len {
		err = fmt.Errorf("the row of %s: %w", quote(name), &locktable.CorruptError{
			Problem: fmt.Sprintf("the entry counts %d waiters, and there are %d rows", e.Overflow.Len, len(all)),
		})
	}
	e.Queue, e.Overflow = all, locktable.Overflow{}
	return err
}
