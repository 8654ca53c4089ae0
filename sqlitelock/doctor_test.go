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
	for range 20 { // the waiters of a long queue have rows of their own
		isRefused(t, d, queued("c"))
	}
	findsNothing(t, d)
	execRaw(t, path, "UPDATE entries SET entry = x'3f' WHERE name = CAST('b' AS BLOB)", "DELETE FROM waiters WHERE id = (SELECT max(id) FROM waiters)")
	servertest.Finds(t, d, "error damaged entries", `2 cannot be read, and these names cannot be locked: "b", "c"`)
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
		findsNothing(t, d)
		execRaw(t, path, "DROP TABLE "+table)
		servertest.Finds(t, d, "error tables", "it lacks "+table+" of its tables")
		openFails(t, path, nil, "it lacks "+table, "stop every program that uses it")
	}
}

func TestTheDoctorReportsHardLinksAndOpenModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows counts no links: run it on another system")
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		path := newPath(t)
		d := open(t, path, nil)
		findsNothing(t, d)
		noError(t, os.Link(path+suffix, path+".other"))
		servertest.Finds(t, d, "error hard links", path+suffix+" has 2 names")
		noError(t, os.Chmod(path+suffix, 0o666)) //nolint:gosec // the doctor must report it
		servertest.Finds(t, d, "warning file mode", path+suffix)
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
			t.Errorf("%s is a mount: got %t, want %t", path, got, want)
		}
	}
}
