package sqlitelock

import (
	sqldriver "database/sql/driver"

	"time"

	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
)

// Writers delete names that were unused for the retention time: after about one
// transaction in tidyEvery, another one checks sqlswap.TidyRows names. The table stores
// the position, so that many short processes together check all names. After the last
// name, tidying pauses.
//
// Tidying needs no column and no index, because a fence contains the time of its grant,
// and an entry the time of its value.
const tidyEvery = 64

func (c *conn) tidy(now locktable.Instant, retention time.Duration) error {
	old := now.Add(-signalLifetime)
	if err := c.exec(dropSignals, int64(old), int64(now.Add(signalLifetime))); err != nil {
		return err
	}
	var cursor []byte
	var pauseEnd locktable.Instant
	err := c.forEachRow("SELECT cursor, rest FROM tidying", func(row []sqldriver.Value) {
		cursor, _ = row[0].([]byte)
		pauseEnd = instant(row[1])
	})
	pause := retention / 24
	if err != nil || now < pauseEnd && pauseEnd <= now.Add(pause) { // a later end is from before the clock was set back
		return err
	}

	rows, err := c.rows(string(cursor), sqlswap.TidyRows)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.err == nil && r.entry.Overflow.Len > 0 && r.entry.Overflow.FirstExpiry <= now {
			// Its waiters may be dead, so run a step, which removes expired places.
			if r.entry, _, r.err = c.runStep(locktable.Step{Name: r.name}, now, func(*locktable.Entry) {}); code(r.err) != 0 {
				return r.err
			}
		}
		if r.err == nil && r.entry.Forgettable(now, retention) {
			if err := c.exec("DELETE FROM entries WHERE name = ?", []byte(r.name)); err != nil {
				return err
			}
		}
	}
	next, pauseEnd := "\x00", now.Add(pause)
	if len(rows) == sqlswap.TidyRows {
		next, pauseEnd = sqlswap.Next(rows[len(rows)-1].name), 0
	}
	return c.exec("UPDATE tidying SET cursor = ?, rest = ?", []byte(next), int64(pauseEnd))
}
