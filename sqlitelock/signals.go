package sqlitelock

import (
	sqldriver "database/sql/driver"

	"time"

	"github.com/pawl-go/pawl/driver"
)

// Signals for other drivers are rows, written in the transaction that caused them. Each
// driver reads the new rows for its own inbox, and deletes none. Tidying deletes rows
// that are older than signalLifetime. A process that was stopped for longer has to renew
// its leases and places anyway.
const signalLifetime = 10 * time.Second

const (
	insertSignal  = "INSERT INTO signals (inbox, token, kind, fence, fences, at) VALUES (?, ?, ?, ?, ?, ?)"
	selectSignals = "SELECT id, token, kind, fence, fences FROM signals WHERE inbox = ? AND id > ? ORDER BY id"
)

// dropSignals deletes old rows. It checks a few of the oldest rows only. Rows from the
// future were written before the clock was set back.
const dropSignals = `DELETE FROM signals WHERE id IN
	(SELECT id FROM (SELECT id, at FROM signals ORDER BY id LIMIT 256) WHERE at < ? OR at > ?)`

// receiveSignals reads the signals for this driver that are new since the last call.
func (t *table) receiveSignals(c *conn) (own []driver.Signal, err error) {
	// data_version is cheap to read, and rises when any other connection changes the
	// file. receiveSignals sets t.dataVersion after it has read the rows, so after an
	// error the next call reads them again.
	version, err := c.value("PRAGMA data_version")
	if err != nil || version == t.dataVersion {
		return nil, err
	}
	last := t.lastSeen
	err = c.forEachRow(selectSignals, func(row []sqldriver.Value) {
		last = integer(row[0])
		token, _ := row[1].([]byte)
		s := driver.Signal{Kind: driver.SignalKind(integer(row[2])), Fence: uint64(integer(row[3])), Fences: int(integer(row[4]))}
		copy(s.Token[:], token)
		own = append(own, s)
	}, t.inbox, t.lastSeen)
	if err != nil {
		return nil, err
	}
	t.dataVersion, t.lastSeen = version, last
	return own, nil
}
