package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/skip"
)

// When the server hangs, the holder is notified before its lease ends, and a Lock that is
// cancelled returns at once.
func TestAHolderIsToldInTimeThatTheServerStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: a server that stands still")
	}
	s := mysqltest.Start(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	holder, other := client(t, url), client(t, url)
	const ttl = 4 * time.Second
	held, err := holder.Mutex("job", pawl.WithTTL(ttl)).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Resume)
	s.Pause()
	paused := time.Now()
	gone, cancel := context.WithCancel(ctx)
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := other.Mutex("job").Lock(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want context.Canceled", err)
	}
	if took := time.Since(paused); took > 10*time.Second { // a request may take 15 s
		t.Errorf("a cancelled Lock took %v", took)
	}
	select {
	case <-held.Done():
		if took := time.Since(paused); took > ttl {
			t.Errorf("the holder was told after %v, with a TTL of %v", took, ttl)
		}
	case <-time.After(2 * ttl):
		t.Error("the holder was not told")
	}
	s.Resume()
	if l := arrives(t, locks(t, other, "job")); l.Fence() <= held.Fence() {
		t.Errorf("fence %d after %d", l.Fence(), held.Fence())
	}
}

// The disk of the tables is full: new names are refused, and held ones can be renewed and
// released in the free space of their page.
func TestAFullDiskRefusesNewNamesAndLetsHeldOnesGo(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: a full disk")
	}
	s := mysqltest.Start(t)
	folder := filepath.Join(s.Dir, "data", s.NewDatabase(t))
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=2m"); err != nil {
		if !errors.Is(err, syscall.EPERM) {
			t.Fatalf("mounting a small filesystem: %v", err)
		}
		skip.Unproven(t, "mounting a small filesystem needs the rights of root, and CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	d := start(t, "mysql:"+s.DSN(filepath.Base(folder)))
	held := mutex("held")
	g := gets(t, d, held)
	ballast := filepath.Join(folder, "ballast")
	f, err := os.Create(ballast)
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_ = f.Close()
	var refused error // not at once, because some pages have room
	for i := 0; refused == nil && i < 20000; i++ {
		_, refused = d.Acquire(ctx, mutex(fmt.Sprintf("%0200d", i)))
	}
	e, ok := errors.AsType[*driver.Error](refused)
	if !ok || e.Permanent || !strings.Contains(e.Hint, "full") {
		t.Fatalf("on a full disk: %v", refused)
	}
	for range 20 {
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(held)})
		if err != nil || answers[0] != nil {
			t.Fatalf("Renew: %v, %v", answers, err)
		}
	}
	releases(t, d, held)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if after := gets(t, d, mutex("held")); after.Fence <= g.Fence {
		t.Errorf("fence %d after %d", after.Fence, g.Fence)
	}
	gets(t, d, mutex("after"))
}
