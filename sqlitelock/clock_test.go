package sqlitelock

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
)

// The tests set the host's clock, and check what docs/internals/bad-days.md says of that.

func TestTheHostsClockIsSet(t *testing.T) {
	c, path := clock(), file(t)
	at := time.Duration(0)
	servertest.ClockEndsLeases(t, open(t, path, &Options{now: c.Now}), open(t, path, &Options{now: c.Now}), func(by time.Duration) {
		c.Advance(by - at)
		at = by
	})
}

// The row is gone, and with it the last fence; the next fence, from the clock, is above
// it.
func TestAfterADeletionTheNewFilesFencesAreGreater(t *testing.T) {
	path := file(t)
	g := gets(t, open(t, path, nil), mutex("job"))
	if err := os.Rename(path, path+".old"); err != nil {
		notOnWindows(t, err)
	}
	for _, companion := range []string{"-wal", "-shm"} {
		noError(t, os.Remove(path+companion))
	}
	if h := gets(t, open(t, path, nil), mutex("job")); h.Fence <= g.Fence {
		t.Fatalf("fence %d after %d", h.Fence, g.Fence)
	}
}

func TestAFileThatIsRestoredFromABackupHasGreaterFences(t *testing.T) {
	c, path := clock(), file(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	cycleAndClose := func() (last uint64) {
		t.Helper()
		d, err := asDriver(OpenFile(ctx, path, &Options{now: c.Now}))
		noError(t, err)
		defer d.Close()
		x := mutex("job")
		g := gets(t, d, x)
		c.Advance(x.TTL)
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
	cycleAndClose() // never released: the backup has it
	copyFile(path, backup)
	last := cycleAndClose()
	copyFile(backup, path)
	if next := cycleAndClose(); next <= last {
		t.Fatalf("fence %d after %d", next, last)
	}
}
