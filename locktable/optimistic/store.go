package optimistic

import (
	"context"
	"errors"
	"iter"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// A Store keeps one value per name and replaces it by compare-and-swap, no more.
//
// Its clock decides, as everywhere. But nobody can run f at the moment in which the store
// swaps, so f runs before, at a lower bound of the store's clock, and the store makes
// sure that its clock stands within the swap's window when it swaps. What begins with the
// step lasts longer by the width of that window, see [locktable.Entry.Blur]. So nothing
// is found expired too early, and nothing ends sooner than its holder was told.
type Store interface {
	// Load reads the values of some names, in their order. A name without one has the
	// zero Stored. If it is asked for one name, the value is no older than the call. Of
	// several they may be, as the replicas of an engine have them.
	Load(ctx context.Context, names []string) ([]Stored, error)

	// Time says where the store's clock stands: now not before From, and To is how far it
	// may go until a swap that begins now has taken effect. It asks the store only if
	// that is not known. Only Swap can say that it was wrong.
	Time(ctx context.Context) (Window, error)

	// Swap replaces values, each on its own, and says in their order what became of each.
	// A swap takes effect if the value still has its version, while the store's clock
	// stands within its window, or never: not later, and not after it was given up. Its
	// signals are sent if it does, to other inboxes than this client's own. On an error
	// nothing is known of any of them.
	Swap(ctx context.Context, swaps []Swap) ([]Swapped, error)

	// Scan yields the values of the names that start with a prefix, as [locktable.Table]
	// has it.
	Scan(ctx context.Context, prefix string) iter.Seq2[Named, error]

	Properties() driver.Properties
	Close() error
}

// Stored is a value as a Store keeps it.
type Stored struct {
	Value []byte // the stored form of an entry; empty if there is none

	// Version tells values of a name apart; 0 if there is none. No two have the same, not
	// even if data was lost between them: a client that remembers one from before would
	// replace the other. Where the engine counts anew after that, a store draws its
	// versions at random.
	Version uint64

	Note any // what the store wants to see again, in Swap.Note
}

// Named is a value of a scan.
type Named struct {
	Name   string
	Stored Stored
	Entry  *locktable.Entry  // of a Transactor, in place of Stored
	Now    locktable.Instant // a lower bound of the store's clock when it was read
}

// A Window is a span of time on the store's clock, both ends included.
type Window struct {
	From, To locktable.Instant
	Day      locktable.Instant // see [locktable.Entry]; 0 where the clock is the time of day
}

// A Swap is one value that is to be replaced.
type Swap struct {
	Name    string
	Version uint64 // of the value that it replaces; 0 if there must be none
	Value   []byte // the new one
	Was     []byte // the one that it replaces, for a store that may have to go back to it
	Note    any    // of that one, see Stored
	Window  Window
	OnTime  bool // the step has an end, which is in the window
	Signals []locktable.Signal

	// Spare is not 0 if a claim joins others on the name. A store that cannot keep values
	// of any size refuses such a swap, with an error that says what is full, unless a
	// value that is larger by Spare would fit, too. If it did not, a crowd could fill an
	// entry, and the next renewal, value or release of those who are there would not fit.
	Spare int

	// Entry is what Value is the stored form of, for columns that people read, and for
	// [locktable.Entry.Ends].
	Entry *locktable.Entry
}

// Swapped is what became of a Swap.
type Swapped struct {
	Done    bool   // it took effect
	Version uint64 // of the new value, if Done

	// Late means that the store's clock was not within the window. Then the next Time
	// knows better. Unless something else is Known, what is stored is taken to be as it
	// was.
	Late bool

	// Known means that Now is what is stored instead; else it is loaded.
	Known bool
	Now   Stored

	Note any // of the new value, see Stored

	// Err is of this one alone: of several steps only its own fails. If each of them
	// does, and not with an ErrLocked, the store is taken to have failed.
	Err error
}

// ErrLocked means that somebody keeps a name from being changed, and for how long nobody
// knows.
var ErrLocked = errors.New("it is locked by a transaction")

// A Lingerer is a Store whose swaps may take effect after they were given up, as long as
// its clock stands still meanwhile; or whose Load may not show for as long what has taken
// effect in time, though Swap would meet it. Then a release writes what is there even if
// it finds nothing to release: a claim that was given up before it, and comes after it,
// finds another version. So does a repeated claim that has what it wants already: a
// release that was given up before it is not to end that.
type Lingerer interface{ Lingers() }

// A Transactor is a Store that can also lock values, and run f on what is there then. Its
// transactions take the steps that a swap is not good for: on names that others change at
// the same time; on names whose queue stands apart from the entry, see [locktable.Apart],
// or has become long enough to; and releases and repeated claims that find nothing to
// change, because what they follow may be written, and not committed yet.
type Transactor interface {
	// Transact takes steps as [locktable.Grouped] has it, and hands out the signals for
	// this client, too.
	Transact(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error

	// Read is that of [locktable.Table]: the value alone lacks the waiters that stand
	// apart. For the same reason Scan yields entries.
	Read(ctx context.Context, name string) (*locktable.Entry, locktable.Instant, error)
}
