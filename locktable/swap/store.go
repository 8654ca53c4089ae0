package swap

import (
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A Store keeps one value per name and replaces it by compare-and-swap, no more.
//
// The store's clock decides what has expired. But a step's function cannot run at the
// moment in which the store swaps. So it runs before, at a lower bound of the store's
// clock, and the store swaps only while its clock is within the swap's window. A lease or
// place that begins with the step lasts longer by the width of that window, see
// [locktable.Entry.Blur]. So no lease is found expired too early, and none ends sooner
// than its holder knows.
type Store interface {
	// Load reads the values of some names, in their order. A name without a value has the
	// zero Stored. With one name, the value is no older than the call. With several they
	// may be older, for example from a replica.
	Load(ctx context.Context, names []string) ([]Stored, error)

	// Time returns the store's time: its clock has reached From, and will not have passed
	// To when a swap that begins now takes effect. Time sends a request only if it cannot
	// compute the time. Only Swap can find out that Time was wrong.
	Time(ctx context.Context) (Window, error)

	// Swap replaces values, each on its own, and returns the results in their order. A
	// swap takes effect only if the value still has its version and the store's clock is
	// within the window, and never after the caller gave up. If it takes effect, Swap
	// sends its signals to the inboxes of other clients. After an error the outcome of
	// all swaps is unknown.
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

	// Version tells the values of a name apart; 0 means no value. Two values never have
	// the same version, even if data was lost between them: otherwise a client that
	// remembers the old value would replace the new one. If the engine can begin to count
	// again after a loss, the store draws its versions at random.
	Version uint64

	StoreState any // what the store wants to get back, in Swap.StoreState
}

// Named is a value of a scan.
type Named struct {
	Name   string
	Stored Stored
	Now    locktable.Instant // a lower bound of the store's clock when it was read
}

// A Window is a span of time on the store's clock, both ends included.
type Window struct {
	From, To locktable.Instant
	Day      locktable.Instant // see [locktable.Entry]; 0 where the clock is the time of day
}

// A Swap is the replacement of one value.
type Swap struct {
	Name       string
	Version    uint64 // the version of the value that the swap replaces; 0 if there must be no value
	Value      []byte // the new value
	Previous   []byte // the old value, for a store that may have to restore it
	StoreState any    // of the old value, see Stored
	Window     Window
	OnTime     bool // the step has an end, and the window ends before it
	Signals    []locktable.Signal

	// ReserveBytes is not 0 if a claim joins others on the name. A store with a size
	// limit refuses such a swap, with an error that says what is full, unless a value
	// that is larger by ReserveBytes would also fit. Otherwise a crowd could fill an
	// entry, and the next renewal, value or release of its holders would not fit.
	ReserveBytes int

	// Entry is the entry that Value encodes, for columns that people read, and for
	// [locktable.Entry.Ends].
	Entry *locktable.Entry
}

// Swapped is the result of a Swap.
type Swapped struct {
	Done    bool   // the swap took effect
	Version uint64 // the version of the new value, if Done

	// OutsideWindow means that the store's clock was not within the window. Then the next
	// Time is more exact. Unless Known is set, the table takes the value to be unchanged.
	OutsideWindow bool

	// Known means that Now is the stored value; otherwise the table loads it.
	Known bool
	Now   Stored

	StoreState any // of the new value, see Stored

	// Err concerns this swap alone: only its own step fails. If every step fails, and not
	// with ErrLocked, the table takes that as a failure of the store.
	Err error
}

// ErrLocked means that a transaction keeps a name from being changed, for an unknown
// time.
var ErrLocked = errors.New("it is locked by a transaction")

// A DelayedWriter is a Store with one of two properties. Its swaps may take effect after
// the caller gave up, while its clock stands still. Or its Load may miss, while its clock
// stands still, a swap that took effect in time, although the next Swap compares with
// that swap's version. Therefore a release writes the entry even if it finds nothing to
// release: a claim that was given up before the release, and arrives after it, then finds
// another version. A repeated claim that is already granted or queued also writes, so
// that a release that was given up before does not end its lease or place.
type DelayedWriter interface{ DelaysWrites() }

// A Gatherer is a Store that can send the swaps of several goroutines in one request,
// which costs little more than one swap. Such a request goes on when one of its callers
// gives up, so a Gatherer is a DelayedWriter, too.
type Gatherer interface {
	DelayedWriter

	// Fit returns the number of these swaps, from the first on, that share a request.
	// Less than 1 counts as 1.
	Fit(swaps []Swap) int
}

// An AllSwapper is a Store that can replace several values as one. A driver of
// [locktable.NewGrouped] then grants several names in one step. Its Load of several
// names, too, is no older than the call.
type AllSwapper interface {
	// SwapAll is Swap, but either all swaps take effect or none of them.
	SwapAll(ctx context.Context, swaps []Swap) ([]Swapped, error)
}
