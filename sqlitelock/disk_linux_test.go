package sqlitelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/skip"
)

// mount makes a small filesystem. Where this user may not do that, the test is skipped:
// it requires root, and in a container CAP_SYS_ADMIN.
func mount(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		skip.Unproven(t, "a small filesystem needs the rights of root, and CAP_SYS_ADMIN: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	return folder
}

// fill takes all the remaining space, and returns a function that frees it.
func fill(t *testing.T, folder string) (empty func()) {
	t.Helper()
	name := filepath.Join(folder, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() { _ = os.Remove(name) }
}

func TestAFullDiskRefusesNewNamesAndLetsHeldOnesGo(t *testing.T) {
	folder := mount(t, "size=1m")
	d := open(t, filepath.Join(folder, "locks.db"), nil)
	held := mutex("held")
	gets(t, d, held)
	empty := fill(t, folder)

	for range 500 { // more than fits into the log without a restart of the log
		if answers, err := d.Renew(ctx, []driver.LeaseRef{lease(held)}); err != nil || answers[0] != nil {
			t.Fatalf("renewing on a full disk: %v, %v", answers, err)
		}
	}
	releases(t, d, held)

	var refused error // not at once, because some pages have room
	for i := 0; refused == nil && i < 10000; i++ {
		_, refused = d.Acquire(ctx, mutex(fmt.Sprintf("%0200d", i)))
	}
	var e *driver.Error
	if !errors.As(refused, &e) || e.Permanent || !isFull(refused) || e.Hint == "" {
		t.Fatalf("on a full disk: %v", refused)
	}
	t.Log(refused)

	empty()
	gets(t, d, mutex("after"))
	if found, err := d.Diagnose(ctx); err != nil || len(found) != 1 || found[0].Subject != "server" {
		t.Fatalf("afterwards: %+v, %v", found, err)
	}
}

func TestAReadOnlyDiskIsAPermanentError(t *testing.T) {
	folder := mount(t, "size=4m")
	path := filepath.Join(folder, "locks.db")
	readOnly := func(flags uintptr) {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	readOnly(syscall.MS_RDONLY)
	if e := refused(t, path); !e.Permanent {
		t.Error("no file can be made there")
	}

	readOnly(0)
	d, err := concrete(OpenFile(ctx, path, nil))
	if err != nil {
		t.Fatal(err)
	}
	gets(t, d, mutex("job"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	readOnly(syscall.MS_RDONLY)
	if e := refused(t, path); !e.Permanent || e.Hint == "" {
		t.Error("the file cannot be written")
	}
}
