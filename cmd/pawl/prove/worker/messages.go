package worker

import (
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Config is the first line that a worker gets.
type Config struct {
	URL       string   // of the database; the network's faults are on the way to it
	Namespace []string // of all names, from the outermost to the innermost
	Worker    int      // from 0
	Life      int      // which process of this worker, from 1
	Epoch     int64    // the begin of the run, on the clock of Now
	FirstID   int64    // the first ID of its claims
	Seed      uint64
	TTL       time.Duration
	Rate      float64 // claims a second, at most; 0 is no limit
	Clients   int     // connections
	Actors    int     // goroutines of each client
	Names     []history.Name
	Planted   string        // the bug that it has; empty for none
	Heeds     bool          // no holder that knows of its loss writes; otherwise half of them do
	Section   time.Duration // most sections work no longer than this; 0 is 5 ms
}

// An Order is a later line that a worker gets.
type Order struct {
	Do     string  `json:"do,omitempty"` // "drain", "crash" or "overstay"
	Answer *Answer `json:"answer,omitempty"`
}

// An Answer is the register's answer to an Ask.
type Answer struct {
	Claim   int64  `json:"claim"`
	Checked uint64 `json:"checked"`
	Plain   uint64 `json:"plain"`
	Stale   bool   `json:"stale"` // refused by the register that checks fences
}

// A Message is one line that a worker sends. Exactly one of its fields is set.
type Message struct {
	Ready bool           `json:"ready,omitempty"` // it has opened all its clients
	Line  *history.Line  `json:"line,omitempty"`  // for the history: an ended claim, a pause, what a name still has
	Open  *history.Claim `json:"open,omitempty"`  // a claim as it stands: asked, granted
	Still *Still         `json:"still,omitempty"`
	Ask   *Ask           `json:"ask,omitempty"`
	Fault string         `json:"fault,omitempty"` // Crash or Overstay: it does that now
	Error string         `json:"error,omitempty"` // why it gives up
	Bye   bool           `json:"bye,omitempty"`   // all is released and closed
}

// Still reports the last time at which a holder believed in its lease.
type Still struct {
	Claim int64 `json:"claim"`
	At    int64 `json:"at"`
}

// An Ask is a request to the register of a name: to read it, or to write the number that
// was read, plus 1.
type Ask struct {
	Claim int64  `json:"claim"`
	Name  string `json:"name"`
	Fence uint64 `json:"fence"`
	Write bool   `json:"write,omitempty"`
	Read  uint64 `json:"read,omitempty"`
	Plain uint64 `json:"plain,omitempty"`
}
