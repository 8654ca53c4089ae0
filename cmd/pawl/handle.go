package main

import (
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

// A handle is the secret by which one process goes on with the lease of another. It comes
// and goes by files and pipes, and never as an argument, which all who can list processes
// would see.

const handleBegin = "pawl1_"

// maxHandle is longer than any handle: a name has 255 bytes at most.
const maxHandle = 4096

// handleSource is where renew and release read it.
type handleSource struct {
	v    *voice
	file string
}

func (h *handleSource) add(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&h.file, "handle", "", "read the handle from this `FILE` (default: standard input)")
}

// refuseArgs does not repeat what was given: it may be a handle.
func (h *handleSource) refuseArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return usage(cmd, errors.New("unexpected argument; the handle comes from standard input or --handle FILE, for others can read a command line"))
	case cmd.Flags().Changed("handle") && h.file == "":
		return usage(cmd, errors.New("--handle is empty"))
	}
	return nil
}

// read reads the handle. It does not wait for it beyond ctx.
func (h *handleSource) read(ctx context.Context, cmd *cobra.Command) (string, error) {
	from, in := "standard input", os.Stdin
	if h.file != "" {
		f, err := os.Open(h.file)
		if err != nil {
			return "", usage(cmd, fmt.Errorf("--handle %s: %w", words.Plain(h.file), cause(err)))
		}
		defer f.Close()
		from, in = words.Plain(h.file), f
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			h.v.warn("others can read the handle in %s, and release the lock with it; chmod 600 hides it", from)
		}
	} else if term.IsTerminal(int(in.Fd())) {
		return "", usage(cmd, errors.New("standard input is a terminal; pipe the handle into it, or use --handle FILE"))
	}
	type answer struct {
		text []byte
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(in, maxHandle+1))
		got <- answer{text, err}
	}()
	var a answer
	select {
	case a = <-got:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	text := strings.TrimSpace(string(a.text))
	switch {
	case a.err != nil:
		return "", usage(cmd, fmt.Errorf("cannot read the handle from %s: %w", from, cause(a.err)))
	case text == "":
		return "", usage(cmd, fmt.Errorf("%s is empty; want the handle that pawl acquire printed", from))
	case len(text) > maxHandle || !strings.HasPrefix(text, handleBegin):
		return "", usage(cmd, fmt.Errorf("%s has no handle; want what pawl acquire printed, which begins with %s", from, handleBegin))
	}
	return text, nil
}

// cause is an error of the system without the path, which is said already.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// A handleFile is where acquire writes the handle. It is whole, or not there: the handle
// is written beside it and then given its name.
type handleFile struct {
	path  string
	begun *os.File // beside it
	old   string   // the handle that is replaced, or empty
	since time.Time
}

// newHandleFile begins the file, before the lock is claimed: who waits for an hour shall
// not learn then that it cannot be written. A file that is there is refused, unless it
// has nothing but a handle; whether that one's lease is over is looked at later.
func newHandleFile(path string) (*handleFile, error) {
	h := &handleFile{path: path}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, cause(err)
	default:
		h.since = info.ModTime()
		text, _ := os.ReadFile(path)
		h.old = strings.TrimSpace(string(text))
		if !info.Mode().IsRegular() || !strings.HasPrefix(h.old, handleBegin) || len(h.old) > maxHandle {
			return nil, errors.New("the file exists, and has no handle in it; give another")
		}
	}
	if h.begun, err = os.CreateTemp(filepath.Dir(path), ".pawl-handle-*"); err != nil { // mode 0600
		return nil, cause(err)
	}
	return h, nil
}

// write writes the handle, and names the file.
func (h *handleFile) write(handle string) error {
	_, err := fmt.Fprintln(h.begun, handle)
	if err == nil {
		err = h.begun.Sync()
	}
	if closed := h.begun.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if h.old == "" {
		// A link is no other file's end, as a rename is. Not every file system has it.
		if err := os.Link(h.begun.Name(), h.path); err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(h.begun.Name(), h.path)
}

func (h *handleFile) discard() {
	_ = h.begun.Close()
	_ = os.Remove(h.begun.Name())
}
