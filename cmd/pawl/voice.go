package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/visible"
)

// The voice of the command.
//
// Standard output has what was asked for, and nothing else: tables and JSON of ls and
// show, the receipt of break, the handle of acquire, the version. `pawl run` and `pawl
// elect` never write there: it belongs to their child.
//
// Standard error has what pawl itself says: one line per event, begun with "pawl: ", in
// the present or past tense, without a full stop. It says what happened, to which name,
// by whom, and what can be done. It is not coloured, and never asks a question unless
// standard input is a terminal. The bar of `pawl bench` is for a terminal only.
//
// pawl is silent when all is well. `pawl run` speaks only when the command did not run,
// or was stopped, or ran without the lock being sure until its end ("pawl: warning: ");
// with -v also while it waits, with -q not if others have the lock.
//
// Names, labels and hosts were written by others. Wherever they are printed, what could
// move a cursor, hide text or forge a line is escaped.
type voice struct {
	out, err io.Writer
	mu       sync.Mutex // one line at a time on err
}

// An errorWriter keeps the first error of its writes, for a caller that does not look.
type errorWriter struct {
	to  io.Writer
	err error
}

func (w *errorWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func (v *voice) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(v.err, "pawl: %s\n", visible.Text(fmt.Sprintf(format, args...)))
}

// warn says what is no failure, but should be known.
func (v *voice) warn(format string, args ...any) { v.say("warning: "+format, args...) }

// sayError says an error of the library, or of ours.
func (v *voice) sayError(err error) { v.say("%s", words.Bare(err)) }
