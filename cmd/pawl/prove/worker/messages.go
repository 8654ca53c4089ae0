package worker

import (
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Config is the first line of a worker's input.
type Config struct {
	URL       string   // of the database, or of the proxy before it
	Namespace []string // of all names, from the outermost to the innermost
	Worker    int      // from 0
	Life      int      // the process of this worker, from 1
	Epoch     int64    // the begin of the run, as a time of Now
	FirstID   int64    // the first ID of its claims
	Seed      uint64
	TTL       time.Duration
	Rate      float64 // claims a second, at most; 0 means no limit
	Clients   int
	Actors    int // goroutines of each client
	Names     []history.Name
	Planted   string        // the planted bug; empty for none
	HeedsLoss bool          // a holder that knows of its loss never writes; otherwise half of them do
	Section   time.Duration // the longest duration of most sections; 0 means 5 ms
}

// An Order is a line of a worker's input after the Config.
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
	Ready bool           `json:"ready,omitempty"` // the worker has opened all its clients
	Line  *history.Line  `json:"line,omitempty"`  // for the history: an ended claim, a pause or a Left
	Open  *history.Claim `json:"open,omitempty"`  // a claim that was asked for or granted
	Still *Still         `json:"still,omitempty"`
	Ask   *Ask           `json:"ask,omitempty"`
	Fault string         `json:"fault,omitempty"` // Crash or Overstay, which begins now
	Error string         `json:"error,omitempty"` // the reason why the worker ends
	Bye   bool           `json:"bye,omitempty"`   // the worker has closed all clients
}

// Still reports the last time at which a holder knew that its lease was held.
type Still struct {
	Claim int64 `json:"claim"`
	At    int64 `json:"at"`
}

// An Ask is a request to the register of a name: to read it, or to write the number that
// was read plus 1.
type Ask struct {
	Claim int64  `json:"claim"`
	Name  string `json:"name"`
	Fence uint64 `json:"fence"`
	Write bool   `json:"write,omitempty"`
	Read  uint64 `json:"read,omitempty"`
	Plain uint64 `json:"plain,omitempty"`
}
