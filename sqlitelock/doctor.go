package sqlitelock

import (
	sqldriver "database/sql/driver"

	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/pawl-go/pawl/driver"
)

// Diagnose implements driver.Doctor: the filesystem, the journal mode, who may read the file, the health of
// its pages and the length of its log. It reads the whole file.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	t := d.table
	var mode, check any
	err := t.read(ctx, func() error {
		return errors.Join(
			t.reader.journalMode.each(func(row []sqldriver.Value) { mode = row[0] }),
			t.reader.quickCheck.each(func(row []sqldriver.Value) { check = row[0] }),
		)
	})
	if err != nil {
		return nil, err
	}
	var found []driver.Finding
	if check != "ok" {
		found = append(found, driver.Finding{
			Severity: "error", Subject: "file", Detail: fmt.Sprintf("quick_check says: %v", check),
			Advice: "stop all that use it, move it away with its -wal and -shm, and start again",
		})
	}
	if mode != "wal" {
		found = append(found, driver.Finding{
			Severity: "error", Subject: "journal mode", Detail: fmt.Sprintf("it is %v, not wal", mode),
			Advice: "close whatever program changed it, and open the file again",
		})
	}
	if f := filesystem(t.path); f != nil {
		found = append(found, *f)
	}
	return append(found, t.fileFindings()...), nil
}

func (t *table) fileFindings() (found []driver.Finding) {
	info, err := os.Stat(t.path)
	if err == nil && info.Mode().Perm()&0o006 != 0 && runtime.GOOS != "windows" {
		found = append(found, driver.Finding{
			Severity: "warning", Subject: "file mode", Detail: fmt.Sprintf("%v: others can read the tokens of leases, and so release them", info.Mode().Perm()),
			Advice: "chmod 600 (or 660 for a group that shares locks) the file, its -wal and its -shm",
		})
	}
	if info, err := os.Stat(t.path + "-wal"); err == nil && info.Size() > 8*longLog {
		found = append(found, driver.Finding{
			Severity: "warning", Subject: "log", Detail: fmt.Sprintf("the -wal file has %d MB: it cannot begin again, or could not for long", info.Size()>>20),
			Advice: "look for a program that keeps a read transaction on the file open",
		})
	}
	return found
}

// networked is the finding about a file on a filesystem whose hosts do not share memory.
func networked(kind string) *driver.Finding {
	return &driver.Finding{
		Severity: "error", Subject: "filesystem", Detail: "the file is on " + kind + ": processes on different hosts would not exclude each other, and could damage it",
		Advice: "use a local disk, or another backend if several hosts share the locks",
	}
}
