package sim

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// A nodeStore is a node for clients that compare and swap, like the backends over package
// swap. The requests use the same links, but have no ends: the window of a swap prevents
// a late swap.
type nodeStore struct {
	clock   *clock
	stamped bool // the engine cannot read its clock before a swap, so it adds the time to the value

	mu      sync.Mutex // protects what follows
	stored  map[string]storedValue
	last    uint64
	inboxes map[string]*link
}

// A storedValue is a value, or the envelope of a value and its stamp.
type storedValue struct {
	bytes   []byte
	version uint64
	stamp   locktable.Instant
}

// forClient returns a stored value in the form that a client gets.
func (v *nodeStore) forClient(k storedValue) swap.Stored {
	if !v.stamped || k.version == 0 {
		return swap.Stored{Value: k.bytes, Version: k.version}
	}
	return swap.Stored{Value: k.envelope().ValueAt(k.stamp), Version: k.version}
}

func (k storedValue) envelope() *stamped.Envelope {
	e, err := stamped.Decode(k.bytes)
	if err != nil {
		panic(err)
	}
	return e
}

// forget removes all values. Versions continue, because they must not repeat.
func (v *nodeStore) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stored = map[string]storedValue{}
}

// A timedAnswer is an answer, and the time on the node's clock at which it was given.
type timedAnswer[T any] struct {
	value T
	at    locktable.Instant
}

func (v *nodeStore) now() locktable.Instant { return locktable.At(v.clock.now()) }

func (v *nodeStore) load(names []string) timedAnswer[[]swap.Stored] {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]swap.Stored, len(names))
	for i, name := range names {
		out[i] = v.forClient(v.stored[name])
	}
	return timedAnswer[[]swap.Stored]{out, v.now()}
}

func (v *nodeStore) swap(swaps []swap.Swap, bug planted) timedAnswer[[]swap.Swapped] {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	out := make([]swap.Swapped, len(swaps))
	for i, s := range swaps {
		is := v.stored[s.Name]
		late := (now < s.Window.From || now > s.Window.To) && !bug.noWindows
		switch {
		case late && !v.stamped:
			out[i].OutsideWindow = true
			continue
		case is.version != s.Version && !bug.noVersions:
			out[i].HasStored, out[i].Stored = is.version%2 == 0, v.forClient(is) // as some engines do
			continue
		}
		v.last++
		next := storedValue{s.Value, v.last, now}
		if v.stamped {
			var void []uint64
			if is.version > 0 {
				void = is.envelope().VoidAt(is.version, is.stamp)
			}
			if bug.noWindows {
				s.Window = swap.Window{To: 1 << 52}
			}
			next.bytes = stamped.Next(s, void).Append(nil)
		}
		v.stored[s.Name] = next
		if late {
			out[i].OutsideWindow = true
			continue
		}
		out[i].Done, out[i].Version = true, v.last
		for _, to := range s.Signals {
			if r := v.inboxes[to.Inbox]; r != nil {
				go r.signal(to.Signal)
			}
		}
	}
	return timedAnswer[[]swap.Swapped]{out, now}
}

func (v *nodeStore) entry(name string) driver.Entry {
	all := v.load([]string{name})
	e := &locktable.Entry{}
	if len(all.value[0].Value) > 0 {
		var err error
		if e, err = locktable.Decode(all.value[0].Value); err != nil {
			panic(err)
		}
	}
	return e.Public(all.at, name)
}

// A storeLink is a link to a node that compares and swaps: a swap.Store.
type storeLink struct {
	*link
	clock swap.Clock
}

// newStore returns a process' driver.
func newStore(p *process, n *node) (*link, rootDriver) {
	r := &storeLink{link: newLink(p, n)}
	inbox := p.id()
	n.values.mu.Lock()
	n.values.inboxes[inbox] = r.link
	n.values.mu.Unlock()
	var d *locktable.Driver
	deliver := func(s driver.Signal) { d.Deliver(s) }
	d = locktable.New(swap.New(r, inbox, deliver), inbox)
	r.listeners.Listen(deliver)
	return r.link, reportingDriver{d, p}
}

// reportingDriver reports the requests to the checker, as a link does.
type reportingDriver struct {
	*locktable.Driver
	p *process
}

func (q reportingDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	q.p.w.queue.noteOwner(q.p.w, c)
	return q.Driver.Acquire(ctx, c)
}

func (q reportingDriver) Release(ctx context.Context, l driver.LeaseRef) error {
	q.p.w.queue.checkGivesBack(q.p.w, 0, l)
	return q.Driver.Release(ctx, l)
}

// ask sends a request, and learns the node's clock from its answer.
func ask[T any](ctx context.Context, r *storeLink, op, name string, f func(v *nodeStore) timedAnswer[T]) (T, error) {
	sent := time.Now()
	a, err := sendOver(ctx, r.link, op, name, false, func(server) (timedAnswer[T], error) { return f(r.n.values), nil })
	if err == nil {
		r.clock.Learn(a.at, sent, time.Now())
	}
	return a.value, err
}

func (r *storeLink) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	return ask(ctx, r, "load", names[0], func(v *nodeStore) timedAnswer[[]swap.Stored] { return v.load(names) })
}

func (r *storeLink) Time(ctx context.Context) (swap.Window, error) {
	return r.clock.Ask(ctx, func(ctx context.Context) error {
		_, err := ask(ctx, r, "time", "", func(v *nodeStore) timedAnswer[int] { return timedAnswer[int]{0, v.now()} })
		return err
	})
}

func (r *storeLink) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	swapped, err := ask(ctx, r, "swap", swaps[0].Name, func(v *nodeStore) timedAnswer[[]swap.Swapped] { return v.swap(swaps, r.w.planted) })
	switch {
	case err != nil:
	case slices.ContainsFunc(swapped, func(s swap.Swapped) bool { return s.OutsideWindow }):
		r.clock.RecordOutside(swaps[0].Window)
	default:
		r.clock.RecordInside(swaps[0].Window)
	}
	return swapped, err
}

func (r *storeLink) Scan(context.Context, string) iter.Seq2[swap.Named, error] {
	panic("the simulation lists no names")
}
