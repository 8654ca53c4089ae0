package sqlitelock

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestTheDoctorNamesARowThatIsDamaged(t *testing.T) {
	path := newPath(t)
	d := open(t, path, nil)
	for _, name := range []string{"a", "b", "c"} {
		gets(t, d, mutex(name))
	}
	for range 20 { // so many waiters have rows of their own
		isRefused(t, d, queued("c"))
	}
	if f := finding(t, d, "damaged entries"); f != nil {
		t.Errorf("no entry is damaged, and the doctor finds %+v", f)
	}
	execRaw(t, path, "UPDATE entries SET entry = x'3f' WHERE name = CAST('b' AS BLOB)", "DELETE FROM waiters WHERE id = (SELECT max(id) FROM waiters)")
	f := finding(t, d, "damaged entries")
	if f == nil || f.Severity != "error" || !strings.Contains(f.Detail, `2 cannot be read, and these names cannot be locked: "b", "c"`) || !strings.Contains(f.Advice, "DELETE FROM entries") {
		t.Errorf("the doctor finds %+v", f)
	}
}

func TestTheDoctorOfANamespaceNamesNoRowOfAnother(t *testing.T) {
	path := newPath(t)
	locks, err := pawl.New(open(t, path, nil), servertest.Patient)
	noError(t, err)
	t.Cleanup(func() { _ = locks.Close() })
	tenants := map[string]*pawl.Client{"acme": locks.Namespace("acme"), "other": locks.Namespace("other"), "eu": locks.Namespace("acme").Namespace("eu")}
	for _, c := range tenants {
		lease, err := c.Mutex("secret").Lock(t.Context())
		noError(t, err)
		defer lease.Release(t.Context())
	}
	for damaged, want := range map[string]string{"other": "other", "acme/eu": "eu"} {
		execRaw(t, path, "UPDATE entries SET entry = x'3f' WHERE name = CAST('@"+damaged+":secret' AS BLOB)")
		for tenant, c := range tenants {
			found, err := c.Diagnose(t.Context())
			noError(t, err)
			isNamed := slices.ContainsFunc(found, func(f pawl.Finding) bool { return strings.Contains(f.Detail, "@"+damaged+":secret") })
			if isNamed != (tenant == want) {
				t.Errorf("%s is damaged, and the doctor of %s finds %+v", damaged, tenant, found)
			}
		}
	}
}

func TestTheDoctorNamesATableThatIsMissing(t *testing.T) {
	for _, table := range []string{"entries", "waiters", "signals", "tidying"} {
		path := newPath(t)
		d := open(t, path, nil)
		if f := finding(t, d, "tables"); f != nil {
			t.Errorf("no table is missing, and the doctor finds %+v", f)
		}
		execRaw(t, path, "DROP TABLE "+table)
		if f := finding(t, d, "tables"); f == nil || f.Severity != "error" || !strings.Contains(f.Detail, "it lacks "+table+" of its tables") || f.Advice == "" {
			t.Errorf("without %s the doctor finds %+v", table, f)
		}
		if e := openFails(t, path); !e.Permanent || !strings.Contains(e.Error(), table) || e.Hint == "" {
			t.Errorf("opening the file without %s: %v; want a permanent error that names the table", table, e)
		}
	}
}

func TestTheDoctorReportsHardLinksAndOpenModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows counts no links: run it on another system")
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := newPath(t)
		d := open(t, path, nil)
		if f := finding(t, d, "hard links"); f != nil {
			t.Fatalf("a file with one name: %+v", f)
		}
		noError(t, os.Link(path+suffix, path+".other"))
		f := finding(t, d, "hard links")
		if f == nil || f.Severity != "error" || !strings.Contains(f.Detail, path+suffix+" has 2 names") {
			t.Errorf("%q with a second name: %+v", suffix, f)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := newPath(t)
		d := open(t, path, nil)
		if err := os.Chmod(path+suffix, 0o666); err != nil { //nolint:gosec // the doctor must report it
			t.Fatal(err)
		}
		if f := finding(t, d, "file mode"); f == nil || !strings.Contains(f.Detail, path+suffix) {
			t.Errorf("all users may write %q: %+v", suffix, f)
		}
	}
}

func TestAFileThatIsMountedWithoutItsFolderIsFound(t *testing.T) {
	const mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n" +
		"512 22 254:0 /srv/locks.db /app/my\\040locks.db rw,relatime - ext4 /dev/vda rw\n" +
		"513 22 254:0 /srv /app/locks rw,relatime - ext4 /dev/vda rw\n"
	for path, want := range map[string]bool{
		"/app/my locks.db": true, "/app/locks/locks.db": false, "/srv/locks.db": false,
	} {
		if got := mountsFile(mounts, path); got != want {
			t.Errorf("%s is a mount: %v", path, got)
		}
	}
}
