// Package prove runs worker processes that lock on a user's database, causes faults in
// them, their network and the database, and writes the history of the run to a file.
//
// The controller shares no code with the locks: it has processes, proxies, registers and
// a file. Package check decides whether the history in the file is correct.
package prove

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// Options configure a run.
type Options struct {
	worker.Config // Run sets Worker, Life, Epoch and FirstID; Rate is the sum of all workers

	Command     []string // starts a worker, which reads its Config from stdin
	Duration    time.Duration
	Workers     int
	Faults      []string // the kinds
	MaxFaults   int      // the number of faults of workers at one time
	CheckFences bool     // whether the checked number of a register refuses a smaller fence
	Server      ServerOptions

	// Begin checks, before the workers start, that the names are free. It sets Backend
	// and Server of run.
	Begin func(ctx context.Context, run *history.Run) error

	// Leftovers returns the holders and waiters that the names still have after the run.
	Leftovers func() ([]history.Left, error)

	Run        history.Run // the caller sets Version, Command, Lock, Ordered, Fenced and Forgets
	History    io.Writer
	Stderr     io.Writer                        // of the workers
	Say        func(format string, args ...any) // prints what the run is doing
	OnProgress func(Progress)                   // called regularly during the run; may be nil
}

// ServerOptions say how the run may disturb the server.
type ServerOptions struct {
	Command  string // starts the server, for the shell; empty if the server runs already
	PID      int    // the process of a server that the run may stop; 0 if it may not
	FailOver string // the command that makes the server fail over; empty if there is none
}

// Progress is the progress of a run.
type Progress struct {
	Phase           string
	Elapsed, Length time.Duration
	Leases          int
	Faults          int
}

// Names returns the locks of a run: three mutexes, two more whose names differ only in
// case, a read/write lock, a semaphore and an election.
func Names() []history.Name {
	return []history.Name{
		{Name: "a", Kind: history.Mutex, Limit: 1},
		{Name: "b", Kind: history.Mutex, Limit: 1},
		{Name: "c", Kind: history.Mutex, Limit: 1},
		{Name: "night", Kind: history.Mutex, Limit: 1},
		{Name: "Night", Kind: history.Mutex, Limit: 1},
		{Name: "rw", Kind: history.RW, Limit: 1},
		{Name: "permits", Kind: history.Semaphore, Limit: 3},
		{Name: "leader", Kind: history.Election, Limit: 1},
	}
}

// PossibleFaults lists the kinds of faults that a run can cause. network means that a
// proxy can stand before the server. s says which faults of the server the run can cause.
func PossibleFaults(network bool, s ServerOptions) []string {
	kinds := slices.Clone(history.ProcessFaults)
	if network {
		kinds = append(kinds, history.NetworkFaults...)
	}
	if s.Command != "" || s.PID > 0 {
		kinds = append(kinds, history.ServerStop)
	}
	if s.Command != "" {
		kinds = append(kinds, history.ServerKill, history.ServerRestart)
	}
	if s.FailOver != "" {
		kinds = append(kinds, history.FailOver)
	}
	return kinds
}
