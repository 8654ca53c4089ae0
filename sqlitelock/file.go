package sqlitelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// making is held while a file is made. Closing any descriptor of a file drops all the
// POSIX locks that this process has on it, SQLite's included, so nobody may open the file
// while the one that made it is not closed. For the same reason nothing in this package
// ever opens an existing file but through SQLite.
var making sync.Mutex

// makeFile makes path an existing regular file, unless it must exist already, and returns
// its name without symbolic links: SQLite names the companions after that.
func makeFile(path string, mustExist bool) (string, error) {
	if strings.ContainsRune(path, 0) || path == "" {
		return "", &driver.InvalidError{What: "path", Problem: "is " + quote(path), Allowed: "the name of a file"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fileError(path, "", err)
	}
	if mustExist {
		return existing(abs)
	}
	making.Lock()
	defer making.Unlock()

	if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return "", fileError(abs, "its folder cannot be made: choose another path, or make it yourself", err)
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		if err := f.Close(); err != nil {
			return "", fileError(abs, "", err)
		}
	case !errors.Is(err, fs.ErrExist):
		return "", fileError(abs, "the file cannot be made: look at its folder's owner and mode, and whether the disk is full or mounted read-only", err)
	}
	return regular(abs)
}

// existing is for a caller who would rather have an error than a new file. An empty one
// has yet to become a database, which is not for such a caller to do.
func existing(abs string) (string, error) {
	const hint = "is the path right? no lock was ever taken in it"
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fileError(abs, hint, fs.ErrNotExist)
	case err == nil && emptied(abs):
		return regular(abs)
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return "", fileError(abs, hint, emptyError{})
	}
	return regular(abs)
}

// emptyError says that there is a file, and no database in it.
type emptyError struct{}

func (emptyError) Error() string { return "the file is empty" }

func (emptyError) Is(target error) bool { return target == fs.ErrNotExist }

// regular is the name of a regular file without symbolic links.
func regular(abs string) (string, error) {
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fileError(abs, "", err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", fileError(abs, "", err)
	case info.IsDir():
		return "", fileError(abs, "name a file in it", errors.New("it is a folder"))
	case !info.Mode().IsRegular():
		return "", fileError(abs, "name a regular file", fmt.Errorf("it is no file (%v)", info.Mode().Type()))
	case emptied(real):
		err := &replacedError{path: real, how: truncated}
		hint, _ := advice(err)
		return "", fileError(abs, hint, err)
	}
	return real, nil
}

// emptied reports whether a file is empty that others have open, or had when they were
// killed. SQLite makes the companions when there is something in the file; so they are
// looked at first.
func emptied(real string) bool {
	_, wal := os.Stat(real + "-wal")
	_, shm := os.Stat(real + "-shm")
	info, err := os.Stat(real)
	return (wal == nil || shm == nil) && err == nil && info.Size() == 0
}

// writable tells why no file can be made in a folder, if so.
func writable(folder string) error {
	f, err := os.CreateTemp(folder, ".pawl-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// fileError is trouble before there is a connection. Mostly asking again will not help; a
// full disk and a lack of descriptors may pass.
func fileError(path, hint string, err error) error {
	return &driver.Error{Backend: backend(path), Op: "open", Hint: hint, Permanent: !isTransient(err), Err: err}
}

// An identity remembers which files were opened: the database and its companions, for two
// processes exclude each other only if they share all three.
type identity struct {
	mu      sync.Mutex
	paths   [3]string
	opened  [3]os.FileInfo
	checked time.Time
	log     int64 // the size of the log, when checked
	page    int64 // the size of the database's pages
}

// identityEvery is how often the files are looked at, which costs some microseconds.
const identityEvery = 100 * time.Millisecond

// identify remembers the files of a database with pages of this size. The first check
// looks at them again.
func identify(path string, page int64) (*identity, error) {
	id := &identity{paths: [3]string{path, path + "-wal", path + "-shm"}, page: page}
	for i, p := range id.paths {
		var err error
		if id.opened[i], err = os.Stat(p); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// check says whether the paths still lead to what was opened, and whether all is there.
// What cannot be looked at is taken to be there. c is a connection that the caller may
// use.
func (id *identity) check(c *conn) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	now := time.Now()
	if now.Sub(id.checked) < identityEvery {
		return nil
	}
	for i, p := range id.paths {
		switch info, err := os.Stat(p); {
		case errors.Is(err, fs.ErrNotExist):
			return &replacedError{path: p, how: "deleted"}
		case err == nil && !os.SameFile(info, id.opened[i]):
			return &replacedError{path: p, how: "replaced"}
		case err == nil && i == 0 && info.Size() == 0:
			return &replacedError{path: p, how: truncated}
		case err == nil && i == 1:
			id.log = info.Size()
		}
	}
	if id.cutShort(c) {
		return &replacedError{path: id.paths[1], how: truncated}
	}
	id.checked = now // only now: while it is not as it was, each call looks again
	return nil
}

// cutShort reports whether the log is shorter than SQLite knows it to be: somebody
// truncated it. It can be seen until the next write, which goes behind the hole. A
// restart of the log (restartLog, or a shell) makes it short, too, first in the file and
// then in the index that is asked here; so it is asked again.
func (id *identity) cutShort(c *conn) bool {
	for range 3 {
		frames, err := c.logFrames()
		if err != nil || frames == 0 {
			return false
		}
		info, err := os.Stat(id.paths[1])
		if err != nil || info.Size() >= logHeader+frames*(frameHeader+id.page) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// What stands in the log besides pages.
const (
	logHeader   = 32
	frameHeader = 24
)

// logSize is how long the log is, once for each time it was looked at; then 0.
func (id *identity) logSize() int64 {
	id.mu.Lock()
	defer id.mu.Unlock()
	size := id.log
	id.log = 0
	return size
}

// replacedError says that this process and the next to open the path would lock different
// files.
type replacedError struct{ path, how string }

const truncated = "truncated"

func (e *replacedError) Error() string { return e.path + " was " + e.how + " while in use" }

func quote(s string) string { return strconv.QuoteToGraphic(s) }
