package sqlitelock

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
)

// execRaw runs SQL on a file, as another program would.
func execRaw(tb testing.TB, path string, statements ...string) {
	tb.Helper()
	db, err := sql.Open("sqlite", path)
	noError(tb, err)
	runSQL(tb, db, statements...)
	noError(tb, db.Close())
}

// openFails checks that OpenFile fails with a permanent error that has these texts.
func openFails(tb testing.TB, path string, o *Options, texts ...string) {
	tb.Helper()
	d, err := asDriver(OpenFile(ctx, path, o))
	if err == nil {
		_ = d.Close()
		tb.Fatalf("%s was opened", path)
	}
	if e := wantDriverError(tb, err, true, ""); e.Backend != "sqlite "+path || e.Op != "open" {
		tb.Errorf("the error names another backend or step: %v", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("%v; want %q in it", err, text)
		}
	}
	tb.Log(err)
}

// findsNothing checks that the doctor finds nothing besides the version.
func findsNothing(tb testing.TB, d *lockDriver) {
	tb.Helper()
	if found := servertest.FindingsOf(tb, d); len(found) > 0 {
		tb.Errorf("the doctor finds %q", found)
	}
}

// setChecked sets the time of the last check of the files.
func (id *identity) setChecked(at time.Time) {
	id.mu.Lock()
	defer id.mu.Unlock()
	id.checked = at
}

// writeLocked keeps the write lock on another connection, as another process would, until
// unlock.
func writeLocked(tb testing.TB, path string) (unlock func()) {
	tb.Helper()
	c, err := connect(path)
	if err == nil {
		err = c.script("BEGIN IMMEDIATE")
	}
	noError(tb, err)
	return func() {
		if err := errors.Join(c.script("ROLLBACK"), c.close()); err != nil {
			tb.Error(err)
		}
	}
}
