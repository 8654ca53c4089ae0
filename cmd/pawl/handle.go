package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
)

// A handle is the secret with which one process continues the lease of another. Commands
// pass it in files and pipes, never as an argument, because other users can list
// arguments.

const handlePrefix = "pawl1_"

// maxHandleSize is more bytes than any handle has, because a name has 255 bytes at most.
const maxHandleSize = 4096

// handleSource is the source from which renew and release read the handle.
type handleSource struct {
	v    *output
	file string
}

func (h *handleSource) addFlags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&h.file, "handle", "", "read the handle from this `FILE` (default: standard input)")
	completeFiles(cmd, "handle")
}

// refuseArgs returns an error for arguments. It does not show them, because they may be a
// handle.
func (h *handleSource) refuseArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return usageError(cmd, errors.New("unexpected argument; the handle comes from standard input or --handle FILE, because other users can read a command line"))
	case cmd.Flags().Changed("handle") && h.file == "":
		return usageError(cmd, errors.New("--handle is empty"))
	}
	return nil
}

// read reads the handle, or gives up when ctx ends.
func (h *handleSource) read(ctx context.Context, cmd *cobra.Command) (string, error) {
	source, in := "standard input", os.Stdin
	if h.file != "" {
		f, err := os.Open(h.file)
		if err != nil {
			return "", usageError(cmd, fmt.Errorf("--handle %s: %w", words.QuoteIfNeeded(h.file), withoutPath(err)))
		}
		defer f.Close()
		source, in = words.QuoteIfNeeded(h.file), f
		if info, err := f.Stat(); err == nil && isReadByOthers(info) {
			h.v.warn("others can read the handle in %s, and release the lock with it; chmod 600 hides it", source)
		}
	} else if term.IsTerminal(int(in.Fd())) {
		return "", usageError(cmd, errors.New("standard input is a terminal; pipe the handle into it, or use --handle FILE"))
	}
	all, err := untilDone(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(in, maxHandleSize+1)) })
	text := strings.TrimSpace(string(all))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", usageError(cmd, fmt.Errorf("cannot read the handle from %s: %w", source, withoutPath(err)))
	case text == "":
		return "", usageError(cmd, fmt.Errorf("%s is empty; want the handle that pawl acquire printed", source))
	case len(text) > maxHandleSize || !strings.HasPrefix(text, handlePrefix):
		return "", usageError(cmd, fmt.Errorf("%s has no handle; want what pawl acquire printed, which begins with %s", source, handlePrefix))
	}
	return text, nil
}

// withoutPath returns an error of the system without the path, which the message has.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// A handleFile is the file to which acquire writes the handle. The file appears only when
// it is complete: acquire writes a temporary file in the same folder, and renames that.
type handleFile struct {
	path      string
	temp      *os.File  // the temporary file
	oldHandle string    // the handle to replace, or empty
	modTime   time.Time // of the file that has the old handle
}

// newHandleFile creates the temporary file before the lock is claimed, so that a user
// need not wait for the lock to learn that the file cannot be written. It refuses an
// existing file, unless its content is a handle. checkReplaceable finds out later whether
// the lease of that handle is over.
func newHandleFile(path string) (*handleFile, error) {
	h := &handleFile{path: path}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, withoutPath(err)
	default:
		h.modTime = info.ModTime()
		text, _ := os.ReadFile(path)
		h.oldHandle = strings.TrimSpace(string(text))
		if !info.Mode().IsRegular() || !strings.HasPrefix(h.oldHandle, handlePrefix) || len(h.oldHandle) > maxHandleSize {
			return nil, errors.New("the file exists, and has no handle in it; give another path")
		}
	}
	if h.temp, err = os.CreateTemp(filepath.Dir(path), ".pawl-handle-*"); err != nil { // mode 0600
		return nil, withoutPath(err)
	}
	return h, nil
}

// write writes the handle, and gives the file its name.
func (h *handleFile) write(handle string) error {
	_, err := fmt.Fprintln(h.temp, handle)
	if err == nil {
		err = h.temp.Sync()
	}
	if err = cmp.Or(err, h.temp.Close()); err != nil {
		return err
	}
	if h.oldHandle == "" {
		// A link, unlike a rename, never replaces another file. Some file systems have no
		// links.
		if err := os.Link(h.temp.Name(), h.path); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(h.temp.Name(), h.path)
}

func (h *handleFile) discard() {
	_ = h.temp.Close()
	_ = os.Remove(h.temp.Name())
}

// isReadByOthers reports whether other users can read a file with a secret.
func isReadByOthers(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows"
}
