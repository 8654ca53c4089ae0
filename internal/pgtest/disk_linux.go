package pgtest

import (
	"errors"
	"io/fs"
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

// SmallDisk makes a disk of a size like "8m" for the server. That requires root, with the
// right to mount; otherwise the test is skipped, even if PAWL_TEST_REQUIRE is set.
func (s *Server) SmallDisk(size string) *Disk {
	s.TB.Helper()
	d := &Disk{Dir: filepath.Join(s.Dir, "small"), tb: s.TB}
	if err := os.Mkdir(d.Dir, 0o700); err != nil {
		s.TB.Fatalf("%v", err)
	}
	if err := syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, "size="+size); err != nil {
		if !errors.Is(err, syscall.EPERM) {
			s.TB.Fatalf("mounting a small filesystem: %v", err)
		}
		skip.Unproven(s.TB, "mounting a small filesystem needs the rights of root, and CAP_SYS_ADMIN: %v", err)
	}
	s.TB.Cleanup(func() { _ = syscall.Unmount(d.Dir, syscall.MNT_DETACH) })
	give(s.TB, d.Dir)
	return d
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

// Take moves a folder of a stopped server's data to the disk.
func (d *Disk) Take(s *Server, folder string) {
	d.tb.Helper()
	from, to := filepath.Join(s.Dir, "data", folder), filepath.Join(d.Dir, folder)
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = errors.Join(os.RemoveAll(from), os.Symlink(to, from))
	}
	if err == nil {
		err = filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
			give(d.tb, path)
			return err
		})
	}
	if err != nil {
		d.tb.Fatalf("%v", err)
	}
}
