package sqlitelock

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
)

// These tests set the host's clock. docs/internals/bad-days.md describes the effects.

func TestTheHostsClockIsSet(t *testing.T) {
	c, path := clock(), newPath(t)
	offset := time.Duration(0)
	servertest.ClockEndsLeases(t, open(t, path, &Options{now: c.Now}), open(t, path, &Options{now: c.Now}), func(by time.Duration) {
		c.Advance(by - offset)
		offset = by
	})
}

// The last fence was in the deleted file. The next fence is greater, because fences
// follow the clock.
func TestANewFileHasGreaterFencesThanADeletedOne(t *testing.T) {
	path := newPath(t)
	g := gets(t, open(t, path, nil), mutex("job"))
	if err := os.Rename(path, path+".old"); err != nil {
		notOnWindows(t, err)
	}
	for _, companion := range []string{"-wal", "-shm"} {
		noError(t, os.Remove(path+companion))
	}
	wantHigherFence(t, g.Fence, gets(t, open(t, path, nil), mutex("job")).Fence)
}

func TestAFileThatIsRestoredFromABackupHasGreaterFences(t *testing.T) {
	c, path := clock(), newPath(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	grantAndClose := func() (fence uint64) {
		t.Helper()
		d := open(t, path, &Options{now: c.Now})
		defer d.Close()
		claim := mutex("job")
		g := gets(t, d, claim)
		c.Advance(claim.TTL)
		return g.Fence
	}
	copyFile := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		noError(t, err)
	}
	grantAndClose() // the backup has this lease, which is never released
	copyFile(path, backup)
	last := grantAndClose()
	copyFile(backup, path)
	wantHigherFence(t, last, grantAndClose())
}
