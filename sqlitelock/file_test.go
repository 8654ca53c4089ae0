package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such modes on Windows: run it on another system")
	}
	folder := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(folder, "locks.db")
	d := open(t, path, nil)
	gets(t, d, mutex("job"))
	for name, want := range map[string]fs.FileMode{
		filepath.Dir(folder): 0o700, folder: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
	} {
		info, err := os.Stat(name)
		if noError(t, err); info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", name, info.Mode(), want)
		}
	}
	findsNothing(t, d)
}

func TestTheModeOfAFileThatWasMadeBeforeIsKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such modes on Windows: run it on another system")
	}
	path := newPath(t)
	noError(t, os.WriteFile(path, nil, 0o600))
	if err := os.Chmod(path, 0o664); err != nil { //nolint:gosec // the driver must keep this mode
		t.Fatal(err)
	}
	d := open(t, path, nil)
	gets(t, d, mutex("job"))
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if noError(t, err); info.Mode().Perm() != 0o664 {
			t.Errorf("%s: mode %v, want 0664", name, info.Mode())
		}
	}
	if found := servertest.FindingsOf(t, d); len(found) != 1 || !found.Have("warning file mode") {
		t.Errorf("the doctor finds %q, want only the file mode", found)
	}
}

func TestPathsMayContainCharactersOfURLs(t *testing.T) {
	names := []string{"a?mode=memory", "b#c", "d%20e", "file:f", "g h", "ö", "i&vfs=none", "j;k", ":memory:"}
	if runtime.GOOS == "windows" {
		names = []string{"b#c", "d%20e", "g h", "ö", "i&vfs=none", "j;k"}
	}
	for _, name := range names {
		path := filepath.Join(t.TempDir(), name)
		gets(t, open(t, path, nil), mutex("job"))
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 3 {
			t.Errorf("%q: the folder has %v, %v; want three files", name, left, err)
		}
	}
	for _, path := range []string{"", "a\x00b"} {
		if _, err := OpenFile(ctx, path, nil); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%q: %v; want ErrInvalid", path, err)
		}
	}
}

func TestARelativePathAndALinkLeadToTheSameFile(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	gets(t, open(t, "locks.db", nil), mutex("job"))
	if err := os.Symlink("locks.db", "link.db"); err != nil {
		t.Skipf("no symbolic links here (%v): run where they are allowed", err)
	}
	isRefused(t, open(t, filepath.Join(folder, "link.db"), nil), mutex("job"))
}

func TestAFolderIsRefusedAsFile(t *testing.T) {
	folder := t.TempDir()
	openFails(t, folder, nil)
	plain := filepath.Join(folder, "plain")
	noError(t, os.WriteFile(plain, []byte("x"), 0o600))
	openFails(t, filepath.Join(plain, "locks.db"), nil)
}

func TestATextFileIsRefused(t *testing.T) {
	path := newPath(t)
	text := strings.Repeat("these are my notes, not a database\n", 100)
	noError(t, os.WriteFile(path, []byte(text), 0o600))
	openFails(t, path, nil)
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("the text file was changed (%v)", err)
	}
}

func TestADamagedFileIsAnErrorNotAFreeName(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	gets(t, d, mutex("job"))
	noError(t, d.Close())
	b, err := os.ReadFile(path)
	noError(t, err)
	for i := 1024; i < len(b); i++ { // all except the page with the header and the schema
		b[i] = 0x5A
	}
	noError(t, os.WriteFile(path, b, 0o600))
	d, err = asDriver(OpenFile(ctx, path, nil))
	if err == nil {
		defer d.Close()
		_, err = d.Acquire(ctx, mutex("job"))
	}
	if wantDriverError(t, err, true, "").Hint == "" {
		t.Errorf("%v has no hint", err)
	}
	t.Log(err)
}

func TestADamagedEntryIsAnErrorNotAFreeName(t *testing.T) {
	for _, entry := range []string{"x'A100'", "'free'", "7", "x''"} {
		path := newPath(t)
		servertest.Damaged(t, open(t, path, nil), open(t, path, nil), "DELETE FROM entries", func(name string) {
			execRaw(t, path, "UPDATE entries SET entry = "+entry+" WHERE name = CAST('"+name+"' AS BLOB)")
		})
	}
}

func TestADeletedOrReplacedFileIsDetected(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete files that are in use: run it on another system")
	}
	for name, damage := range map[string]func(path string) error{
		"deleted":         os.Remove,
		"moved":           func(path string) error { return os.Rename(path, path+".old") },
		"its log deleted": func(path string) error { return os.Remove(path + "-wal") },
		"truncated":       func(path string) error { return os.Truncate(path, 0) },
		"its log cut":     func(path string) error { return os.Truncate(path+"-wal", 0) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			d := open(t, path, nil)
			signals := listen(t, d)
			c := mutex("job")
			gets(t, d, c)
			noError(t, damage(path))
			wantSignal(t, signals, driver.SignalRetry, driver.Token{})
			time.Sleep(identityCheckInterval)
			_, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
			if wantDriverError(t, err, true, "").Hint == "" {
				t.Errorf("%v has no hint", err)
			}
			t.Log(err)
		})
	}
}

// Open treats an empty file as a new one, unless another process has it open: in that
// case the file was truncated, and the leases in it are lost.
func TestATruncatedFileInUseIsNotOpenedAsNew(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	gets(t, d, mutex("job"))
	if err := os.Truncate(path, 0); err != nil {
		notOnWindows(t, err)
	}
	for _, o := range []*Options{nil, {MustExist: true}} {
		openFails(t, path, o, "truncated", "-shm")
	}
}

func TestOpenDetectsATruncatedLogInUse(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	gets(t, d, mutex("job"))
	if err := os.Truncate(path+"-wal", 0); err != nil {
		notOnWindows(t, err)
	}
	openFails(t, path, nil, "-wal was truncated")
}

// If a process writes before Pawl checks the log, the log is long again, with a hole in
// it. Reading the hole returns an error, and never a free name.
func TestATruncatedLogGrantsNoNameTwice(t *testing.T) {
	path := newPath(t)
	d, other := open(t, path, nil), open(t, path, nil)
	var held []driver.Claim
	for i := range 50 {
		held = append(held, mutex(fmt.Sprint("job", i)))
		gets(t, d, held[i])
	}
	for _, d := range []*lockDriver{d, other} {
		d.table.files.setChecked(time.Now().Add(time.Hour)) // no check sees the truncation
	}
	if err := os.Truncate(path+"-wal", 0); err != nil {
		notOnWindows(t, err)
	}
	if _, err := d.Renew(ctx, []driver.LeaseRef{lease(held[0])}); err != nil {
		t.Fatalf("%v; want success, because the driver has the last pages in memory", err)
	}
	corrupt := 0
	for _, c := range held {
		grant, err := other.Acquire(ctx, mutex(c.Name))
		if err == nil {
			t.Fatalf("%s is held, and was granted again: %+v", c.Name, grant)
		}
		if !errors.Is(err, driver.ErrHeld) {
			corrupt++
		}
	}
	if corrupt == 0 {
		t.Error("no claim got an error for the hole")
	}
}

func TestAFileThatComesBackIsUsedAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move files that are in use: run it on another system")
	}
	path := newPath(t)
	d := open(t, path, nil)
	noError(t, os.Rename(path, path+".old"))
	time.Sleep(identityCheckInterval)
	if _, err := d.Acquire(ctx, mutex("job")); !errors.Is(err, driver.ErrUnavailable) {
		t.Fatal(err)
	}
	noError(t, os.Rename(path+".old", path))
	gets(t, d, mutex("job"))
}

// notOnWindows skips a test that moves or empties an open file, if Windows refuses that.
// On other systems it fails the test.
func notOnWindows(t *testing.T, err error) {
	t.Helper()
	if runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	t.Skipf("Windows does not change a file that is open (%v): run it on another system", err)
}
