package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/visible"
)

// A output prints what the command prints.
//
// Standard output has only the result: tables and JSON of ls and show, the receipt of
// break, the handle of acquire, the version. `pawl run` and `pawl elect` never write
// there: it belongs to their child.
//
// Standard error has the messages of pawl: one line per event, begun with "pawl: ", in
// the present or past tense, without a full stop. A message says what happened, to which
// name, by whom, and what can be done. It has no colour. Pawl asks a question only if
// standard input is a terminal. The bar of `pawl bench` is for a terminal only.
//
// Pawl is silent when all is well. `pawl run` prints a message only when the command did
// not run, or was stopped, or ran without the lock being certain until its end ("pawl:
// warning: "). With -v it also prints one while it waits; with -q it prints none if
// another client has the lock.
//
// Other people write names, labels and hosts. Pawl escapes them wherever it prints them,
// so that they cannot move a cursor, hide text or forge a line.
//
// Standard error may have no reader: Ctrl-S has stopped its terminal, or its pipe is
// full. The commands that hold or wait for a lock call neverBlock first, and each command
// calls it before it prints its error.
type output struct{ out, err io.Writer }

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

// warn prints a warning: no failure, but worth knowing.
func (v *output) warn(format string, args ...any) { v.say("warning: "+format, args...) }

// sayError prints an error of the library, or of this command.
func (v *output) sayError(err error) { v.say("%s", words.Bare(err)) }

// neverBlock makes messages wait for a reader in another goroutine: pawl must stop its
// command, pass signals on and campaign even if standard error has no reader.
func (v *output) neverBlock() {
	if v.err == os.Stderr { // not the buffer of a test
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

// onTerminal reports whether people see standard error.
func (v *output) onTerminal() bool {
	to := v.err
	if w, ok := to.(*endingWriter); ok {
		to = w.to
	}
	_, async := to.(*asyncWriter)
	return (async || to == os.Stderr) && term.IsTerminal(int(os.Stderr.Fd()))
}
