// Package prove runs worker processes that lock on a user's database, causes the faults
// of production in them and in the database, and writes down what happened.
//
// The controller here shares nothing with the locks: it has processes, proxies, a
// register and a file. Package check decides what the file shows.
package prove

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// Options say what is run.
type Options struct {
	worker.Config // of all workers: Run sets Worker, Life, Epoch and FirstID, and Rate is of all together

	Command     []string // of a worker, which reads its Config
	For         time.Duration
	Workers     int
	Faults      []string // the kinds
	Hands       int      // the number of faults of workers at one time
	CheckFences bool     // one number of a register checks fences; without that, the run has a planted bug
	Server      ServerOptions

	// Begin looks, before the workers start, whether the names are free. It sets the
	// database's name and place, and its version.
	Begin func(ctx context.Context, run *history.Run) error

	// Left returns the holders and waiters that the names still have after the run.
	Left func() ([]history.Left, error)

	Run     history.Run // Version, Command, Lock, Ordered, Fenced and Forgets; Run sets the rest
	History io.Writer
	Stderr  io.Writer                        // of the workers
	Say     func(format string, args ...any) // prints what the run is doing
	Done    func(Progress)                   // called regularly during the run
}

// ServerOptions say what may be done to the server.
type ServerOptions struct {
	Command  string // starts the server, for the shell; empty if the server runs already
	PID      int    // the process of the server, if the run may stop it; otherwise 0
	FailOver string // the command that fails it over; empty if there is none
}

// Progress is the progress of a run.
type Progress struct {
	Phase  string
	At, Of time.Duration
	Leases int
	Faults int
}

// Names are the locks of a run: three that many want, two whose names differ in case
// only, a read/write lock, a semaphore and an election.
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

// Possible lists the kinds that can be done: to processes always; to the network if a
// proxy can stand in it; to the server as far as it is in the user's hands.
func Possible(network bool, s ServerOptions) []string {
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
