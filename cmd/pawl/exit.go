package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawl-go/pawl"
)

// The exit codes. Those from 64 to 78 are from sysexits.h, those from 126 on are the
// shell's. `pawl run`, `once` and `elect` also return the exit code of their command.
const (
	exitOther         = 1   // any other error: standard output cannot be written, ...
	exitNotHeld       = 1   // renew, release: the handle's lease is over
	exitUsage         = 64  // wrong usage; nothing was done
	exitUnavailable   = 69  // the backend did not answer, or cannot do what was asked
	exitHeld          = 75  // the lock was not acquired, or is not free; or break broke nothing. -E changes the code
	exitLost          = 76  // the lock was lost, and the command was stopped
	exitUnsound       = 78  // doctor or prove found that the backend breaks a promise
	exitTooLong       = 124 // --max-hold was over; timeout(1) has the same code
	exitNotExecutable = 126 // the command exists, but cannot run
	exitNotFound      = 127 // there is no such command
	exitSignal        = 128 // + n: signal n ended it
)

const exitCodes = `The exit code is that of COMMAND, or 128 + n when signal n ended it, or:
` + runCodes

// runCodes is the part of exitCodes that is also in the help of once.
const runCodes = `   64  wrong usage; nothing was done
   69  the database is unavailable or too slow; COMMAND was not run
   75  the lock was not acquired (-E changes this code)
   76  the lock was lost, or --health failed, and COMMAND was stopped
  124  COMMAND ran for --max-hold, and was stopped
  126  COMMAND cannot be executed
  127  COMMAND or its interpreter was not found`

const handleCodes = `The exit code is 0, or:
    1  the lease is not held any more
   64  there is no handle, or it is from another kind of database
   69  the database is unavailable`

const electCodes = `The exit code is that of COMMAND, or 128 + n when signal n ended it, or:
   64  wrong usage; nothing was done
   69  the database was unavailable when elect started, or refuses every retry
   76  the lead was lost, and a process of COMMAND outlived SIGKILL
  126  COMMAND cannot be executed
  127  COMMAND or its interpreter was not found`

// An exit ends the command with a code, and prints its error if there is one.
type exit struct {
	code        int
	err         error
	keySignal   os.Signal // the signal of a key, such as Ctrl-C, that ended the child; or nil
	deathSignal os.Signal // the signal with which pawl ends itself, or nil
}

func (e *exit) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }

func (e *exit) Unwrap() error { return e.err }

func codeOf(err error) int {
	switch {
	case errors.Is(err, pawl.ErrInvalid):
		return exitUsage
	case errors.Is(err, pawl.ErrLost):
		return exitLost
	case errors.Is(err, pawl.ErrHeld), errors.Is(err, pawl.ErrNoSuchLease):
		return exitHeld
	case errors.Is(err, pawl.ErrUnavailable), errors.Is(err, errors.ErrUnsupported), errors.Is(err, context.DeadlineExceeded):
		return exitUnavailable
	}
	return exitOther
}

// usageError returns the error for wrong arguments, which refers to the help. If err is
// nil, it returns nil.
func usageError(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return &exit{code: exitUsage, err: fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())}
}

// stoppedBy returns the exit error after a signal, without a message.
func stoppedBy(s os.Signal) error { return &exit{code: exitSignal + signalNumber(s)} }
