package mysqllock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/skip"
)

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
