package servertest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawl-go/pawl/internal/skip"
)

// A Disk is a small filesystem.
type Disk struct {
	Dir string

	tb TB
}

// SmallDisk mounts a disk of a size like "8m" at a folder. Without the right to mount it
// skips the test, even if PAWL_TEST_REQUIRE is set.
func SmallDisk(tb TB, folder, size string) *Disk {
	tb.Helper()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		if !errors.Is(err, syscall.EPERM) {
			tb.Fatalf("mounting a small filesystem: %v", err)
		}
		skip.Unproven(tb, "mounting a small filesystem needs the rights of root, and CAP_SYS_ADMIN: %v", err)
	}
	tb.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	return &Disk{folder, tb}
}

// Fill takes all the remaining space.
func (d *Disk) Fill() {
	d.tb.Helper()
	f, err := os.Create(filepath.Join(d.Dir, "ballast"))
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.tb.Fatalf("%v", err)
	}
	_ = f.Close()
}

// Empty frees the space that Fill took.
func (d *Disk) Empty() { _ = os.Remove(filepath.Join(d.Dir, "ballast")) }
