package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/visible"
)

// An output prints everything that the command prints.
//
// Standard output has only the result, such as the table of ls, the receipt of break and
// the handle of acquire. `pawl run`, `once` and `elect` never write there: it belongs to
// their child.
//
// Standard error has the messages of pawl: one line per event, begun with "pawl: ", in
// the present or past tense, without a full stop. A message says what happened, to which
// name, by whom, and what can be done. It has no colour. Pawl asks a question only if
// standard input is a terminal. A bar or a line of progress is for a terminal only.
//
// If nothing fails, `pawl run` prints no message, except a warning that locks are in
// memory (mem:) or, on a terminal, in the default file. With -v it also prints one while
// it waits; with -q it prints none if another client has the lock.
//
// Other people write names, labels and hosts. Pawl escapes them wherever it prints them,
// so that they cannot move a cursor, hide text or forge a line.
//
// A write to standard error may block: Ctrl-S has stopped its terminal, or its pipe is
// full. So commands that hold or wait for a lock call neverBlock first, and each command
// calls it before it prints its error.
type output struct {
	out, err   io.Writer
	onTerminal bool // standard error is a terminal
}

// An errorWriter keeps the first error of its writes, for a caller that ignores them.
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

func (v *output) say(format string, args ...any) {
	fmt.Fprintf(v.err, "pawl: %s\n", visible.Text(fmt.Sprintf(format, args...)))
}

// warn prints a warning, which is not a failure.
func (v *output) warn(format string, args ...any) { v.say("warning: "+format, args...) }

// sayError prints an error of the library, or of this command.
func (v *output) sayError(err error) { v.say("%s", words.ErrorText(err)) }

// neverBlock makes another goroutine write messages, because pawl must stop its command,
// pass signals on and campaign even if a write to standard error blocks.
func (v *output) neverBlock() {
	if v.err == os.Stderr { // only then, because a test has a buffer
		v.err = newAsyncWriter(os.Stderr)
	}
}

// flush waits until the messages are written, but not longer than d if neverBlock was
// called.
func (v *output) flush(d time.Duration) {
	if w, ok := v.err.(*asyncWriter); ok {
		w.flush(d)
	}
}
