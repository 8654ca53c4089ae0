package swap

import (
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A Store keeps one value per name, and replaces it by compare-and-swap.
//
// The store's clock decides what has expired. But a step's function runs in the client,
// before the store swaps. So it gets a lower bound of the store's clock, and the store
// swaps only while its clock is within the swap's window. A lease or place that begins
// with the step lasts longer by the width of that window, its Entry.Uncertainty. So no
// step removes a lease too early, and no lease ends sooner than its holder expects.
type Store interface {
	// Load reads the values of some names, in their order. A name without a value has the
	// zero Stored. The value of a single name is no older than the call. The values of
	// several names may be older, for example from a replica.
	Load(ctx context.Context, names []string) ([]Stored, error)

	// Time returns a window for a swap that begins now: the store's clock has reached
	// From, and should reach To only after the swap takes effect. Time sends a request
	// only if it cannot compute the time. If the window was wrong, Swap returns
	// OutsideWindow.
	Time(ctx context.Context) (Window, error)

	// Swap replaces values independently of each other, and returns the results in their
	// order. A swap takes effect only if the value still has its version and the store's
	// clock is within the window, and never after the caller gave up. If it takes effect,
	// Swap sends its signals to the inboxes of other clients. After an error the outcome
	// of all swaps is unknown.
	Swap(ctx context.Context, swaps []Swap) ([]Swapped, error)

	// Scan yields the values of the names that start with a prefix, as the Scan of
	// [locktable.Table] does.
	Scan(ctx context.Context, prefix string) iter.Seq2[Named, error]

	Properties() driver.Properties
	Close() error
}

// Stored is a value as a Store keeps it.
type Stored struct {
	Value []byte // the stored form of an entry; empty if there is no entry

	// Version identifies a value of the name; 0 means no value. Two values never have the
	// same version, even if data was lost between them: otherwise a client that remembers
	// the old value could replace the new one. If the engine's counter may start again
	// after a loss, the store draws its versions at random.
	Version uint64

	StoreState any // private to the store; the table returns it in Swap.StoreState
}

// Named is a value of a scan.
type Named struct {
	Name   string
	Stored Stored
	Now    locktable.Instant // a lower bound of the store's clock when it was read

	WallClock locktable.Instant // see Window
}

// A Window is a span of time on the store's clock, both ends included.
type Window struct {
	From, To  locktable.Instant
	WallClock locktable.Instant // see [locktable.Entry.WallClock]; 0 if the store's clock is the time of day
}

// A Swap is the replacement of one value.
type Swap struct {
	Name       string
	Version    uint64 // the version of the value that the swap replaces; 0 if there must be no value
	Value      []byte // the new value
	Previous   []byte // the old value, for a store that may have to restore it
	StoreState any    // the StoreState of the old value, see Stored
	Window     Window
	HasEnd     bool // the step has an end, and the window ends before it
	Signals    []locktable.Signal

	// ReserveBytes is not 0 if a claim joins others on the name. A store with a size
	// limit then refuses the swap unless ReserveBytes more would also fit. Otherwise many
	// claims could fill an entry, and the next renewal, value or release of its holders
	// would not fit.
	ReserveBytes int

	// Entry is the entry that Value encodes, for columns that people read, and for
	// [locktable.Entry.Ends].
	Entry *locktable.Entry
}

// Swapped is the result of a Swap.
type Swapped struct {
	Done    bool   // the swap took effect
	Version uint64 // the version of the new value, if Done

	// OutsideWindow means that the store's clock was not within the window. After it,
	// Time must return a better window. Unless HasStored is set, the table assumes that
	// the value is unchanged.
	OutsideWindow bool

	// HasStored means that Stored is the stored value; otherwise the table loads it.
	HasStored bool
	Stored    Stored

	StoreState any // the StoreState of the new value, see Stored

	// Err is the error of this swap alone: only its own step fails. If every step fails,
	// and not with ErrLocked, the table reports a failure of the store.
	Err error
}

// ErrLocked means that a transaction keeps a name from being changed, for an unknown
// time.
var ErrLocked = errors.New("it is locked by a transaction")

// A DelayedWriter is a Store with one of two properties: a swap may take effect after its
// caller gave up, because the clock stands still or a commit is delayed, or Load may miss
// a swap that took effect, although the next Swap compares with its version. So on a
// DelayedWriter a release writes the entry even if it finds nothing to release: an
// earlier claim that was given up, and arrives later, then fails, because the version has
// changed. For the same reason, a repeated claim that is already granted or queued writes
// the entry: an earlier release that was given up then fails.
type DelayedWriter interface{ DelaysWrites() }

// A Gatherer is a Store that can send the swaps of several goroutines in one request,
// which costs little more than one swap. A caller that gives up does not end such a
// request, so a Gatherer must be a DelayedWriter, too.
type Gatherer interface {
	DelayedWriter

	// Fit returns how many of the first swaps fit into one request. Less than 1 counts as
	// 1.
	Fit(swaps []Swap) int
}

// An AllSwapper is a Store that can replace several values in one atomic step. A driver
// of [locktable.NewGrouped] then grants several names in one step. Its Load must never
// return values older than the call, even for several names.
type AllSwapper interface {
	// SwapAll swaps as Swap does, but all swaps take effect or none does.
	SwapAll(ctx context.Context, swaps []Swap) ([]Swapped, error)
}
