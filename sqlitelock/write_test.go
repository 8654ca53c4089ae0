package sqlitelock

import (
	"errors"
	"os"
	"testing"
	"time"
)

// A transaction that stays open would keep out all processes, including this one.
func TestAnOpenTransactionIsRolledBack(t *testing.T) {
	d := open(t, newPath(t), nil)
	w := d.table.writer.conn
	err := errors.Join(w.exec(beginImmediate), w.exec(upsertEntry, []byte("job"), []byte("half a step")))
	noError(t, err)
	gets(t, d, mutex("job"))
}

func TestAPanicInATransactionKeepsNoLock(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	func() {
		defer func() { _ = recover() }()
		_ = d.table.writer.conn.transaction(func() error { panic("bug") })
	}()
	gets(t, open(t, path, nil), mutex("job"))
	gets(t, d, mutex("other"))
}

func TestTheLogStaysShortHoweverManyWrite(t *testing.T) {
	skipIfShort(t, "it writes a log of megabytes")
	t.Parallel()
	path := newPath(t)
	d := open(t, path, nil)
	c, err := connect(path)
	noError(t, err)
	defer c.close()
	// An open reader keeps SQLite from restarting the log.
	noError(t, c.script("BEGIN; SELECT count(*) FROM entries"))
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		noError(t, err)
		return info.Size()
	}
	for size() <= longLogSize {
		cycle(t, d, "job")
	}
	noError(t, c.script("COMMIT"))
	for began := time.Now(); size() > longLogSize; cycle(t, d, "job") {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("the log still has %d bytes", size())
		}
	}
}
