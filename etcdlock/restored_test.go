package etcdlock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// A restored backup brings back its locks. A client that was open all the time trusts
// nothing that it learned after the backup, although revisions repeat.
//
// After the backup, other clients held the name. One of them still holds it when the
// operator restores the backup. Its client notifies it of the loss, the restored lease
// expires in its time, and the next fence is above all earlier ones.
func TestABackupRestoredWhileOthersHold(t *testing.T) {
	skipIfShort(t, "it restores a backup")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	old := openDriver(t, c.URL())
	kept := mutex("kept")
	kept.TTL = 10 * time.Minute // a slow machine needs a while to restore
	gets(t, old, kept)
	a, b := openClient(t, c.URL()), openClient(t, c.URL())
	first := lockName(t, a, "job")
	restore := backup(t, c.Members[0])
	_ = first.Release(t.Context()) // the lease is lost if the server was down for long
	for range 5 {                  // the backup lacks these fences
		cycle(t, old, "lost")
	}
	last := lockName(t, b, "job")
	free := lockName(t, b, "free")                                                     // a name that the backup lacks
	if err := free.Release(t.Context()); err != nil && !errors.Is(err, pawl.ErrLost) { // lost on a slow machine
		t.Fatal(err)
	}
	restore()

	fresh := openDriver(t, c.URL())
	for range 5 { // revisions repeat
		other := mutex("lost")
		gets(t, fresh, other)
		refused(t, old, mutex("lost"))
		releases(t, fresh, other)
	}
	refused(t, fresh, mutex("kept"))
	keeps(t, old, kept)
	if again := lockName(t, a, "free"); again.Fence() <= free.Fence() {
		t.Errorf("fence %d after %d, of a name that the backup lacks", again.Fence(), free.Fence())
	}
	wantLost(t, last)
	rises(t, last.Fence(), lockName(t, a, "job").Fence())
}

// No client is open when the backup is restored.
func TestABackupRestoredWhileNoClientIsOpen(t *testing.T) {
	skipIfShort(t, "it restores a backup")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	a := open(t, c.URL())
	restore := backup(t, c.Members[0])
	shown := gets(t, a, mutex("job")).Fence
	noError(t, a.Close())
	restore()
	rises(t, shown, gets(t, openDriver(t, c.URL()), mutex("job")).Fence)
}

// When the cluster loses all data, the holders learn that their leases are lost, and
// later fences are greater, for a new client and for one that was open before.
func TestAllDataLost(t *testing.T) {
	skipIfShort(t, "it waits for leases that end")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	m := c.Members[0]
	a, b := openClient(t, c.URL()), openClient(t, c.URL())
	one, two := lockName(t, a, "one"), lockName(t, b, "two")
	m.KillAndErase()
	m.Run()
	wantLost(t, one)
	wantLost(t, two)
	rises(t, one.Fence(), lockName(t, b, "one").Fence())
	rises(t, two.Fence(), lockName(t, openClient(t, c.URL()), "two").Fence())
}

// backup copies a member's data. Then it lets the clock run on for two seconds.
func backup(t *testing.T, m *etcdtest.Member) (restore func()) {
	t.Helper()
	backupDir := filepath.Join(m.Dir, "backup")
	m.Kill()
	replaceDir(t, m.Data(), backupDir)
	m.Run()
	time.Sleep(2 * time.Second)
	return func() {
		t.Helper()
		m.Kill()
		replaceDir(t, backupDir, m.Data())
		m.Run()
	}
}

// replaceDir replaces a folder by a copy of another.
func replaceDir(t *testing.T, from, to string) {
	t.Helper()
	noError(t, os.RemoveAll(to))
	noError(t, os.CopyFS(to, os.DirFS(from)))
}

// lockName locks the name, with a short lease that the client renews.
func lockName(t *testing.T, c *pawl.Client, name string) *pawl.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangTime)
	defer cancel()
	for {
		l, err := c.Mutex(name, pawl.WithTTL(3*time.Second)).Lock(ctx)
		if err == nil {
			return l
		}
		if ctx.Err() != nil || !errors.Is(err, pawl.ErrUnavailable) {
			t.Fatalf("Lock: %v", err)
		}
	}
}

// wantLost waits until the client notifies the holder that its lease is lost.
func wantLost(t *testing.T, l *pawl.Lease) {
	t.Helper()
	select {
	case <-l.Done():
		if err := context.Cause(l.Context()); !errors.Is(err, pawl.ErrLost) {
			t.Errorf("the lease of %s ends with %v; want ErrLost", l.Name(), err)
		}
	case <-time.After(hangTime):
		t.Errorf("the holder of %s was not notified of the loss", l.Name())
	}
}
