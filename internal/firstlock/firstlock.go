//go:build unix

// Package firstlock is the backend that docs/internals/writing-a-backend.md makes, step
// by step: a folder with a file for each name. It is only an example; no package imports
// it.
package firstlock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Open makes one client of the locks in a folder, which must exist.
func Open(dir string) driver.Driver { return locktable.New(&folder{dir, time.Now}, "") }

// A folder is a table of entries: a file for each name, and one file whose lock is the
// transaction.
type folder struct {
	dir string
	now func() time.Time
}

// Update implements locktable.Table.
func (f *folder) Update(ctx context.Context, steps []locktable.Step, do func(i int, e *locktable.Entry, now locktable.Instant)) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for i, step := range steps {
		if step.HasEnd && ctx.Err() != nil { // the lock is held, so no wait follows
			return ctx.Err()
		}
		if err := f.step(i, step.Name, do); err != nil {
			return f.driverError(err)
		}
	}
	return nil
}

func (f *folder) step(i int, name string, do func(i int, e *locktable.Entry, now locktable.Instant)) error {
	_, e, err := load(f.path(name))
	if err != nil {
		return err
	}
	now := locktable.At(f.now())
	do(i, e, now)
	switch {
	case !e.Changed:
		return nil
	case e.Idle(now): // later fences are greater, because they follow the clock
		return os.Remove(f.path(name))
	}
	return f.store(name, e)
}

// lock excludes other callers, of this process and of others. It waits until ctx ends.
func (f *folder) lock(ctx context.Context) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(f.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, f.driverError(err)
	}
	for ctx.Err() == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // closing the file unlocks it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, f.driverError(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Microsecond):
		}
	}
	_ = file.Close()
	return nil, ctx.Err()
}

// path returns the file of a name. A name may contain a "/", and be too long for a file.
func (f *folder) path(name string) string {
	return filepath.Join(f.dir, fmt.Sprintf("%x.entry", sha256.Sum256([]byte(name))))
}

// load reads a file: the name, which contains no line break, and the entry.
func load(path string) (name string, e *locktable.Entry, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &locktable.Entry{}, nil
	}
	if err != nil {
		return "", nil, err
	}
	line, stored, _ := bytes.Cut(text, []byte("\n"))
	e, err = locktable.Decode(stored)
	return string(line), e, err
}

// store replaces a file in one step, so that no process reads half of it.
func (f *folder) store(name string, e *locktable.Entry) error {
	next := filepath.Join(f.dir, "next")
	if err := os.WriteFile(next, e.Append([]byte(name+"\n")), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path(name))
}

// Read implements locktable.Table.
func (f *folder) Read(_ context.Context, name string) (*locktable.Entry, locktable.Instant, error) {
	_, e, err := load(f.path(name))
	return e, locktable.At(f.now()), f.driverError(err)
}

// Scan implements locktable.Table.
func (f *folder) Scan(ctx context.Context, prefix string) iter.Seq2[locktable.Row, error] {
	return func(yield func(locktable.Row, error) bool) {
		paths, err := filepath.Glob(filepath.Join(f.dir, "*.entry"))
		if err != nil {
			yield(locktable.Row{}, f.driverError(err))
			return
		}
		byName := map[string]string{}
		for _, path := range paths {
			if name, _, _ := load(path); name != "" && strings.HasPrefix(name, prefix) {
				byName[name] = path
			}
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			e, now, err := f.Read(ctx, name)
			if !yield(locktable.Row{Name: name, Entry: e, Now: now}, err) {
				return
			}
		}
	}
}

// driverError adds the folder and a hint to an error.
func (f *folder) driverError(err error) error {
	if _, corrupt := errors.AsType[*locktable.CorruptError](err); err == nil || corrupt {
		return err
	}
	return &driver.Error{Backend: "folder " + f.dir, Err: err, Hint: "look at the folder, its owner and its mode"}
}

// Properties implements locktable.Table.
func (f *folder) Properties() driver.Properties {
	return driver.Properties{
		Backend: "folder", Location: "folder " + f.dir, Clock: driver.ClockHost, MinTTL: driver.MinTTL,
		FenceSurvives: driver.FencesRiseByClock,
	}
}

// Close implements locktable.Table.
func (f *folder) Close() error { return nil }
