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

// A backup that is restored brings back its locks. A client that was open all the time
// trusts nothing that it learned after the backup, although revisions come again.
func TestABackupRestored(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it restores a backup")
	}
	t.Parallel()
	c := etcdtest.Start(t, 1)
	a := start(t, c.URL())
	kept := mutex("kept")
	gets(t, a, kept)
	restore := backup(t, c.Members[0])
	for range 5 { // which the backup lacks
		lost := mutex("lost")
		gets(t, a, lost)
		releases(t, a, lost)
	}
	restore()

	b := start(t, c.URL())
	for range 5 { // revisions come again
		other := mutex("lost")
		gets(t, b, other)
		refused(t, a, mutex("lost"))
		releases(t, b, other)
	}
	refused(t, b, mutex("kept"))
	keeps(t, a, kept)
}

// After the backup of a lease other clients held its name, and the last of them does when
// the backup is restored. That holder learns that its lease is lost, the restored lease
// expires in its time, and the next fence is above all earlier ones.
func TestABackupRestoredWhileOthersHold(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it restores a backup")
	}
	t.Parallel()
	c := etcdtest.Start(t, 1)
	a, b := opened(t, c.URL()), opened(t, c.URL())
	first := locked(t, a, "job")
	restore := backup(t, c.Members[0])
	_ = first.Release(t.Context()) // it may be lost, if the server was down for long
	last := locked(t, b, "job")
	free := locked(t, b, "free")                                                       // a name that is new
	if err := free.Release(t.Context()); err != nil && !errors.Is(err, pawl.ErrLost) { // on a slow machine
		t.Fatal(err)
	}
	restore()

	if again := locked(t, a, "free"); again.Fence() <= free.Fence() {
		t.Errorf("fence %d after %d, of a name that the backup does not know", again.Fence(), free.Fence())
	}
	isTold(t, last)
	if next := locked(t, a, "job"); next.Fence() <= last.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), last.Fence())
	}
}

// The same, and no client is open when it is restored.
func TestABackupRestoredWhileNobodyIsThere(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it restores a backup")
	}
	t.Parallel()
	c := etcdtest.Start(t, 1)
	a := open(t, c.URL())
	restore := backup(t, c.Members[0])
	shown := gets(t, a, mutex("job")).Fence
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	restore()
	if g := gets(t, start(t, c.URL()), mutex("job")); g.Fence <= shown {
		t.Errorf("fence %d after %d", g.Fence, shown)
	}
}

// The cluster has lost all data: holders learn that they lost, and the next fences are
// above all earlier ones, for a new client and for one that was open before.
func TestAllDataLost(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for leases that end")
	}
	t.Parallel()
	c := etcdtest.Start(t, 1)
	m := c.Members[0]
	a, b := opened(t, c.URL()), opened(t, c.URL())
	one, two := locked(t, a, "one"), locked(t, b, "two")
	m.Empty()
	m.Run()
	isTold(t, one)
	isTold(t, two)
	if next := locked(t, b, "one"); next.Fence() <= one.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), one.Fence())
	}
	if next := locked(t, opened(t, c.URL()), "two"); next.Fence() <= two.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), two.Fence())
	}
}

// backup copies a member's data, and lets the member work for a moment after that.
func backup(t *testing.T, m *etcdtest.Member) (restore func()) {
	t.Helper()
	kept := filepath.Join(m.Dir, "backup")
	m.Kill()
	copies(t, m.Data(), kept)
	m.Run()
	time.Sleep(2 * time.Second) // the clock of the backup lacks them
	return func() {
		t.Helper()
		m.Kill()
		copies(t, kept, m.Data())
		m.Run()
	}
}

// copies makes a folder a copy of another.
func copies(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// locked wants the name to be locked, with a short lease that is renewed.
func locked(t *testing.T, c *pawl.Client, name string) *pawl.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
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

// isTold wants the client to notify the holder that its lease is lost.
func isTold(t *testing.T, l *pawl.Lease) {
	t.Helper()
	select {
	case <-l.Done():
		if err := context.Cause(l.Context()); !errors.Is(err, pawl.ErrLost) {
			t.Errorf("the holder of %s was told %v; want ErrLost", l.Name(), err)
		}
	case <-time.After(hang):
		t.Errorf("the holder of %s was not told", l.Name())
	}
}
