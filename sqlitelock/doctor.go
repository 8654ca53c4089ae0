package sqlitelock

import (
	sqldriver "database/sql/driver"

	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Diagnose implements driver.Diagnoser. It checks the filesystem, the journal mode, the
// file's mode, its pages, tables and rows, and the length of the log. It reads the whole
// file.
func (d *lockDriver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	t := d.table
	var journalMode, quickCheck any
	var configErr *engine.ConfigError
	err := t.read(ctx, func(c *conn) error {
		_, err := checkSchema(c)
		if errors.As(err, &configErr) {
			err = nil
		}
		return errors.Join(
			err,
			c.forEachRow("PRAGMA journal_mode", func(row []sqldriver.Value) { journalMode = row[0] }),
			c.forEachRow("PRAGMA quick_check(1)", func(row []sqldriver.Value) { quickCheck = row[0] }),
		)
	})
	if err != nil {
		return nil, err
	}
	var found engine.Findings
	found.Add(quickCheck != "ok", driver.SeverityError, "file", fmt.Sprintf("quick_check says: %v", quickCheck),
		"stop every program that uses it, move it away with its -wal and -shm, then start them again")
	if configErr != nil {
		found.Add(true, driver.SeverityError, "tables", configErr.Problem, configErr.Hint)
	}
	if len(found) == 0 {
		found = append(found, locktable.Damaged(ctx, d)...)
	}
	found.Add(journalMode != "wal", driver.SeverityError, "journal mode", fmt.Sprintf("it is %v, not wal", journalMode),
		"close the program that changed it, and open the file again")
	found = append(found, filesystem(t.path)...)
	found = append(found, t.fileFindings()...)
	found = append(found, engine.Version("SQLite", sqlite3.SQLITE_VERSION)...)
	engine.SortFindings(found)
	return found, ctx.Err()
}

func (t *table) fileFindings() (found engine.Findings) {
	var readable []string
	for _, path := range t.files.paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // the next use reports the missing file
		}
		if info.Mode().Perm()&0o006 != 0 && runtime.GOOS != "windows" {
			readable = append(readable, fmt.Sprintf("%s is %v", path, info.Mode().Perm()))
		}
		found = append(found, aliasFindings(path, info)...)
		found.Add(path == t.path+"-wal" && info.Size() > 8*longLogSize, driver.SeverityWarning, "log",
			fmt.Sprintf("the -wal file has %d MB: SQLite cannot restart it, or could not for a long time", info.Size()>>20),
			"look for a program that keeps a read transaction on the file open")
	}
	found.Add(len(readable) > 0, driver.SeverityWarning, "file mode", strings.Join(readable, ", ")+": others can read the tokens of leases, and so release them",
		"chmod 600 (or 660 for a group that shares locks) the file, its -wal and its -shm")
	return found
}

// networkFinding returns the finding for a file on a network filesystem, whose hosts do
// not share memory.
func networkFinding(kind string) []driver.Finding {
	return engine.Found(driver.SeverityError, "filesystem", "the file is on "+kind+": processes on different hosts would not exclude each other, and could damage it",
		"use a local disk, or another backend if several hosts share the locks")
}

// aliasFindings returns findings if a file can be opened under another path, where it has
// other companions.
func aliasFindings(path string, info os.FileInfo) (found engine.Findings) {
	links := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Nlink") // on Unix
	if links.CanUint() {
		found.Add(links.Uint() > 1, driver.SeverityError, "hard links",
			fmt.Sprintf("%s has %d names: a program that opens it by another name does not share its -wal and -shm, sees none of its locks, and damages it", path, links.Uint()),
			fmt.Sprintf("delete the others: find / -xdev -samefile %s", quote(path)))
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // on Linux
	found.Add(mountsFile(string(mounts), path), driver.SeverityError, "mount",
		path+" is a mount of its own: a program that opens it at its source does not share its companion files, sees none of its locks, and damages it",
		"mount the folder, so that the file, its -wal and its -shm are shared as one")
	return found
}

// mountsFile reports whether a path is a mount point. The fifth word of each line of
// mounts is a mount point.
func mountsFile(mounts, path string) bool {
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for line := range strings.Lines(mounts) {
		if words := strings.Fields(line); len(words) > 4 && words[4] == escaped {
			return true
		}
	}
	return false
}
