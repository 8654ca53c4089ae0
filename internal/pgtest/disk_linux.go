package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl/internal/servertest"
)

// SmallDisk mounts a disk of a size like "8m" for the server.
func (s *Server) SmallDisk(size string) *servertest.Disk {
	s.TB.Helper()
	dir := filepath.Join(s.Dir, "small")
	noError(s.TB, os.Mkdir(dir, 0o700))
	d := servertest.SmallDisk(s.TB, dir, size)
	chownToServer(s.TB, dir)
	return d
}

// Move moves a folder of the stopped server's data to a disk.
func (s *Server) Move(folder string, d *servertest.Disk) {
	s.TB.Helper()
	from, to := filepath.Join(s.Dir, "data", folder), filepath.Join(d.Dir, folder)
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = errors.Join(os.RemoveAll(from), os.Symlink(to, from))
	}
	if err == nil {
		err = filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
			chownToServer(s.TB, path)
			return err
		})
	}
	noError(s.TB, err)
}
