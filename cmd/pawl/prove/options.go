package prove

import (
	"context"
	"io"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Options say what is run.
type Options struct {
	URL         string   // of the database
	Worker      []string // the command of a worker, which reads [worker.Config]
	Lock        string   // what the workers lock with, for the report
	For         time.Duration
	Workers     int
	Clients     int // of each worker
	Actors      int // of each client
	Seed        uint64
	TTL         time.Duration
	Rate        float64  // claims a second of all workers, at most; 0 is no limit
	Faults      []string // the kinds
	Hands       int      // the number of faults of workers at one time
	Names       []history.Name
	Planted     string
	Ordered     bool
	Fenced      bool
	Forgets     bool          // the server may lose its last writes
	CheckFences bool          // one number of a register checks fences; without that, the run has a planted bug
	Heeds       bool          // a holder that knows of its loss writes nothing
	Section     time.Duration // most sections work no longer than this; 0 is some milliseconds

	Namespace []string // from the outermost to the innermost
	Server    ServerOptions
	Rest      time.Duration // between two faults of the server, besides a few TTLs

	// Begin looks, before the workers start, whether the names are free. It sets the
	// database's name and place, and its version.
	Begin func(ctx context.Context, run *history.Run) error

	// Left looks, when all is over, at what the names still have.
	Left func() ([]history.Left, error)

	Run     history.Run // version, command, backend
	History io.Writer
	Stderr  io.Writer                        // of the workers
	Say     func(format string, args ...any) // prints what the run is doing
	Done    func(Progress)                   // called now and then
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
