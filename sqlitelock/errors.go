package sqlitelock

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

func backend(path string) string { return "sqlite " + path }

// code returns SQLite's result code in err, without its extension, or 0 if err has none.
func code(err error) int { return extendedCode(err) & 0xff }

func extendedCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// isBusy reports whether another connection has locked the file at the moment.
func isBusy(err error) bool {
	return slices.Contains([]int{sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}, code(err))
}

func isFull(err error) bool {
	return code(err) == sqlite3.SQLITE_FULL || extendedCode(err) == sqlite3.SQLITE_IOERR_SHMSIZE
}

// isTransient reports whether an error of the operating system may pass by itself.
func isTransient(err error) bool {
	transient := []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.EINTR, syscall.EAGAIN}
	return slices.ContainsFunc(transient, func(e error) bool { return errors.Is(err, e) })
}

// driverError converts an error about the file to a *driver.Error. It returns the error
// of the caller's ctx unchanged.
func (t *table) driverError(op driver.Op, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return engine.Failure(err, backend(t.path), op, advice)
}

const busyHint = "another process keeps the write lock, for example a backup, a stopped process, or an sqlite3 shell with an open transaction"

func advice(err error) (hint string, permanent bool) {
	var replaced *replacedError
	var corrupt *locktable.CorruptError
	switch {
	case errors.As(err, &replaced) && replaced.change == truncated:
		return "all locks in it are lost: stop every program that uses it, delete it with its -wal and -shm, then start them again", true
	case errors.As(err, &replaced):
		return "a program that opens the path now locks another file: stop every program that uses it, then start them again", true
	case errors.As(err, &corrupt):
		return "this name cannot be locked until its row is repaired, or deleted while no client holds it: DELETE FROM entries WHERE name = ...", true
	case isFull(err):
		return "the disk, or a quota, is full: leases end by themselves, new ones need some free space", false
	case isBusy(err), errors.Is(err, errQueueTimeout):
		return busyHint, false
	}
	switch code(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "the file, its -wal, its -shm and their folder have to be writable: look at owner, mode and mount", true
	case sqlite3.SQLITE_NOTADB:
		return "it is not an SQLite file, or its -wal is damaged: give another path, or move the file away", true
	case sqlite3.SQLITE_CORRUPT:
		return "the file is damaged: stop every program that uses it, move it away with its -wal and -shm, then start them again; fences will still rise", true
	case sqlite3.SQLITE_CANTOPEN:
		return "look at the owner and mode of the file and its folder, and at the limit of open files", false
	case sqlite3.SQLITE_IOERR:
		return "the disk or its filesystem fails: see the system's log", false
	}
	return "", false
}
