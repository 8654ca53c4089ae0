package sqlitelock

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAnotherApplicationsDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	for name, statements := range map[string][]string{
		"tables":         {"CREATE TABLE customers (id INTEGER)"},
		"application id": {"PRAGMA application_id = 7"},
		"user version":   {"PRAGMA user_version = 1"},
		"in WAL mode":    {"PRAGMA journal_mode = WAL", "CREATE TABLE customers (id INTEGER)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			execRaw(t, path, statements...)
			before, err := os.ReadFile(path)
			noError(t, err)
			openFails(t, path, nil)
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed (%v)", err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("the folder has %v, %v; want only the file", left, err)
			}
		})
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := newPath(t)
	noError(t, open(t, path, nil).Close())
	execRaw(t, path, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	openFails(t, path, nil, "a newer Pawl made it")
}

// A trigger can delete held locks. So Open refuses a file that has one, and the doctor
// reports a trigger that was added later.
func TestAFileWithATriggerIsRefused(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	execRaw(t, path, "CREATE TRIGGER sweep AFTER INSERT ON entries BEGIN DELETE FROM entries; END")
	servertest.Finds(t, d, "error tables", "sweep")
	openFails(t, path, nil, "sweep", "DROP TRIGGER")
}

// Names are bytes, even in a file whose text is UTF-16.
func TestAFileInUTF16StoresNamesAsBytes(t *testing.T) {
	path := newPath(t)
	execRaw(t, path, "PRAGMA encoding = 'UTF-16be'; CREATE TABLE t (x); DROP TABLE t")
	one, two := open(t, path, nil), open(t, path, nil)
	for _, name := range []string{"gr\u00f6\u00dfe", "\u0160\u20ac", "\U0001f512", "A", "a"} {
		c, next := mutex(name), queued(name)
		gets(t, one, c)
		isRefused(t, two, next)
		if e, err := two.Inspect(ctx, name); err != nil || e.Name != name || len(e.Holders) != 1 || len(e.Waiters) != 1 {
			t.Errorf("%q: %+v, %v; want a holder and a waiter", name, e, err)
		}
		signals := listen(t, two)
		releases(t, one, c)
		wantSignal(t, signals, driver.SignalGranted, next.Token)
	}
	if encoding := queryInt(t, one, "SELECT count(*) FROM pragma_encoding WHERE encoding = 'UTF-16be'"); encoding != 1 {
		t.Error("the file is not in UTF-16")
	}
}
