package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
)

// The exit codes. Those below 124 are from sysexits.h, those above are the shell's. What
// `pawl run` runs has its own code passed on.
const (
	exitOther         = 1   // none of the below: standard output cannot be written, ...
	exitNotHeld       = 1   // renew, release: the lease of the handle is over
	exitUsage         = 64  // refused before anything was sent
	exitUnavailable   = 69  // the backend could not be asked
	exitHeld          = 75  // the lock was not acquired; not free; nothing was broken. -E changes it
	exitLost          = 76  // the lock was lost, and the command was stopped
	exitUnsound       = 78  // the doctor found that a promise of the backend does not hold
	exitTooLong       = 124 // --max-hold was over; as timeout(1) has it
	exitNotExecutable = 126 // the command is there, and cannot be run
	exitNotFound      = 127 // there is no such command
	exitSignal        = 128 // + n: signal n ended it
)

// exitCodes is for the help of run.
const exitCodes = `The exit code is that of COMMAND, or 128 + n when signal n ended it, or:
` + runCodes

// runCodes is the part that once has, too.
const runCodes = `   64  wrong usage; nothing was done
   69  the database is unavailable or too slow; COMMAND was not run
   75  the lock was not acquired (-E changes this code)
   76  the lock was lost, or --health failed, and COMMAND was stopped
  124  COMMAND ran for --max-hold, and was stopped
  126  COMMAND cannot be executed
  127  COMMAND or its interpreter was not found`

// handleCodes is for the help of renew and release.
const handleCodes = `The exit code is 0, or:
    1  the lease is not held any more
   64  there is no handle, or it is one of another kind of database
   69  the database is unavailable`

// electCodes is for the help of elect.
const electCodes = `The exit code is that of COMMAND, or 128 + n when signal n ended it, or:
   64  wrong usage; nothing was done
   69  the database was unavailable when elect started
   76  the lead was lost, and some of COMMAND outlived SIGKILL
  126  COMMAND cannot be executed
  127  COMMAND or its interpreter was not found`

// An exit ends the command with a code. Its error is said, if there is one.
type exit struct {
	code int
	err  error
	key  os.Signal // what a key of the terminal has sent to end it, or nil
}

func (e *exit) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }

func (e *exit) Unwrap() error { return e.err }

func codeOf(err error) int {
	switch {
	case errors.Is(err, pawl.ErrInvalid):
		return exitUsage
	case errors.Is(err, pawl.ErrLost):
		return exitLost
	case errors.Is(err, pawl.ErrHeld), errors.Is(err, pawl.ErrNotHeld):
		return exitHeld
	case errors.Is(err, pawl.ErrUnavailable), errors.Is(err, errors.ErrUnsupported), errors.Is(err, context.DeadlineExceeded):
		return exitUnavailable
	}
	return exitOther
}

// usage is the error for what was wrongly asked. It says where the help is.
func usage(cmd *cobra.Command, err error) error {
	return &exit{code: exitUsage, err: fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
}

// stoppedBy is the end by a signal, which needs no words.
func stoppedBy(s os.Signal) error { return &exit{code: exitSignal + signalNumber(s)} }
