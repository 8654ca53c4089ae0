package sqlitelock

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnotherApplicationsDatabaseIsRefusedAndLeftAlone(t *testing.T) {
	for name, statements := range map[string][]string{
		"tables":         {"CREATE TABLE customers (id INTEGER)"},
		"application id": {"PRAGMA application_id = 7"},
		"user version":   {"PRAGMA user_version = 1"},
		"in WAL mode":    {"PRAGMA journal_mode = WAL", "CREATE TABLE customers (id INTEGER)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			raw(t, path, statements...)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if e := refused(t, path); !e.Permanent {
				t.Error("it stays another application's")
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("it was changed (%v)", err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := file(t)
	d, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	raw(t, path, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1))
	if e := refused(t, path); !e.Permanent || !strings.Contains(e.Hint, "newer") {
		t.Error(e)
	}
}
