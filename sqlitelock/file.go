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

// creatingFile is locked while a file is created. Closing any descriptor of a file drops
// all the POSIX locks that this process has on it, including SQLite's. So no other
// goroutine may open the file before the descriptor that created it is closed. For the
// same reason this package opens an existing file only through SQLite.
var creatingFile sync.Mutex

// makeFile checks that path is a regular file, and creates it if it is missing, unless it
// must exist. It returns the name without symbolic links, from which SQLite derives the
// companions' names.
func makeFile(path string, mustExist bool) (string, error) {
	if strings.ContainsRune(path, 0) || path == "" {
		return "", &driver.InvalidError{Argument: "path", Problem: "is " + quote(path), Allowed: "the name of a file"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fileError(path, "", err)
	}
	if !mustExist {
		creatingFile.Lock()
		defer creatingFile.Unlock()
		if err := createFile(abs); err != nil {
			return "", err
		}
	}
	return checkRegular(abs, mustExist)
}

// createFile creates a file and its folder, if they are missing.
func createFile(abs string) error {
	if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return fileError(abs, "its folder cannot be created: choose another path, or create the folder yourself", err)
	}
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		if err := f.Close(); err != nil {
			return fileError(abs, "", err)
		}
	case !errors.Is(err, fs.ErrExist):
		return fileError(abs, "the file cannot be created: look at its folder's owner and mode, and whether the disk is full or mounted read-only", err)
	}
	return nil
}

// emptyError means that the file exists, but is empty.
type emptyError struct{}

func (emptyError) Error() string { return "the file is empty" }

func (emptyError) Is(target error) bool { return target == fs.ErrNotExist }

// checkRegular returns the name of a regular file without symbolic links. If the file
// must exist, an empty file is also an error, because it is not a database yet.
func checkRegular(abs string, mustExist bool) (string, error) {
	const noLockHint = "is the path right? no lock was ever taken in it"
	var info os.FileInfo
	real, err := filepath.EvalSymlinks(abs)
	if err == nil {
		info, err = os.Stat(real)
	}
	switch {
	case mustExist && errors.Is(err, fs.ErrNotExist):
		return "", fileError(abs, noLockHint, fs.ErrNotExist)
	case err != nil:
		return "", fileError(abs, "", err)
	case info.IsDir():
		return "", fileError(abs, "name a file in it", errors.New("it is a folder"))
	case !info.Mode().IsRegular():
		return "", fileError(abs, "name a regular file", fmt.Errorf("it is not a regular file (%v)", info.Mode().Type()))
	case isTruncated(real):
		err := &replacedError{path: real, change: truncated}
		hint, _ := advice(err)
		return "", fileError(abs, hint, err)
	case mustExist && info.Size() == 0:
		return "", fileError(abs, noLockHint, emptyError{})
	}
	return real, nil
}

// isTruncated reports whether a file is empty although it has a companion: then another
// process has truncated a database. SQLite creates the companions after it has written to
// the file, so isTruncated looks for the companions first.
func isTruncated(real string) bool {
	_, wal := os.Stat(real + "-wal")
	_, shm := os.Stat(real + "-shm")
	info, err := os.Stat(real)
	return (wal == nil || shm == nil) && err == nil && info.Size() == 0
}

// checkWritable returns an error if no file can be created in a folder.
func checkWritable(folder string) error {
	f, err := os.CreateTemp(folder, ".pawl-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// fileError makes the error for a file that cannot be opened. Most such errors are
// permanent; a full disk and a lack of descriptors are not.
func fileError(path, hint string, err error) error {
	return &driver.Error{Backend: backend(path), Op: "open", Hint: hint, Permanent: !isTransient(err), Err: err}
}

// An identity identifies the opened files: the database and its companions. Two processes
// exclude each other only if they have opened the same three files.
type identity struct {
	mu       sync.Mutex
	paths    [3]string
	opened   [3]os.FileInfo
	checked  time.Time // the time of the last check
	logBytes int64     // the size of the log at the last check; logSize sets it to 0
	pageSize int64     // the size of the database's pages
}

// identityCheckInterval is the time between two checks of the files, each of which costs
// some microseconds.
const identityCheckInterval = 100 * time.Millisecond

// identify returns the identity of the opened files.
func identify(path string, pageSize int64) (*identity, error) {
	id := &identity{paths: [3]string{path, path + "-wal", path + "-shm"}, pageSize: pageSize}
	for i, p := range id.paths {
		var err error
		if id.opened[i], err = os.Stat(p); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// check returns an error if the paths no longer lead to the opened files, or a file was
// truncated. It ignores other failures of stat. The caller passes its connection as c.
func (id *identity) check(c *conn) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	now := time.Now()
	if now.Sub(id.checked) < identityCheckInterval {
		return nil
	}
	for i, p := range id.paths {
		switch info, err := os.Stat(p); {
		case errors.Is(err, fs.ErrNotExist):
			return &replacedError{path: p, change: "deleted"}
		case err == nil && !os.SameFile(info, id.opened[i]):
			return &replacedError{path: p, change: "replaced"}
		case err == nil && i == 0 && info.Size() == 0:
			return &replacedError{path: p, change: truncated}
		case err == nil && i == 1:
			id.logBytes = info.Size()
		}
	}
	if id.logTruncated(c) {
		return &replacedError{path: id.paths[1], change: truncated}
	}
	id.checked = now // not after an error, so that the next call checks again
	return nil
}

// logTruncated reports whether the log is shorter than SQLite's index says, because
// another process truncated it. The next write would go behind the missing part, and make
// the file long again. When a process restarts the log (restartLog, or a shell), the file
// becomes short a moment before the index does, so logTruncated compares both several
// times.
func (id *identity) logTruncated(c *conn) bool {
	for range 3 {
		frames, err := c.logFrames()
		if err != nil || frames == 0 {
			return false
		}
		info, err := os.Stat(id.paths[1])
		if err != nil || info.Size() >= logHeader+frames*(frameHeader+id.pageSize) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// The sizes, in bytes, of the header of the log and of the header of each page in it.
const (
	logHeader   = 32
	frameHeader = 24
)

// logSize returns the size of the log from the last check, and 0 until the next check.
func (id *identity) logSize() int64 {
	id.mu.Lock()
	defer id.mu.Unlock()
	size := id.logBytes
	id.logBytes = 0
	return size
}

// replacedError means that path no longer leads to the opened file, or was truncated.
type replacedError struct{ path, change string }

const truncated = "truncated"

func (e *replacedError) Error() string { return e.path + " was " + e.change + " while in use" }

func quote(s string) string { return strconv.QuoteToGraphic(s) }
