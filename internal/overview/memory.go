package overview

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// How much a Memory keeps.
const (
	MostNames  = 1000 // names: those that something happened to last
	MostLeases = 50   // leases of each, the last ones
)

// Memory is what was seen of leases since it was made. It goes by looks: what came and
// went between two of them it does not have.
type Memory struct {
	Began time.Time

	mu    sync.Mutex // protects all below
	names map[string]*list.Element
	order *list.List // of *past, the one that something happened to last is first
}

type past struct {
	name   string
	leases []Past // in the order in which they were seen
	waits  []pawl.Waiter
}

// Past is one lease, as it was seen.
type Past struct {
	Fence  uint64
	Owner  pawl.Owner
	Since  time.Time     // of the grant, on the backend's clock
	Waited time.Duration // in the queue; 0 if it was not seen there
	Held   time.Duration // until the end; 0 while it is held
	End    End
	By     string    // with Broken, who did it, if that is known
	Ended  time.Time // when the end was seen, on this process's clock; zero while it is held
}

// End says how a lease ended, as far as that shows.
type End string

// The ends.
const (
	Held     End = "held"     // it has not
	Released End = "released" // before its time was over
	Expired  End = "expired"  // it was not renewed in time
	Broken   End = "broken"   // somebody took it, and the name was closed
	Unseen   End = "unseen"   // too long ago when that was seen
)

func newMemory(now time.Time) *Memory {
	return &Memory{Began: now, names: map[string]*list.Element{}, order: list.New()}
}

// Of are the leases of a name, the latest first.
func (m *Memory) Of(name string) []Past {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.names[name]
	if e == nil {
		return nil
	}
	leases := slices.Clone(e.Value.(*past).leases) //nolint:forcetypeassert // it has no others
	slices.Reverse(leases)
	return leases
}

// Names is how many names it knows.
func (m *Memory) Names() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.names)
}

// Break notes who broke a lease: the backend does not show it.
func (m *Memory) Break(name string, fence uint64, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.names[name]; e != nil {
		p := e.Value.(*past) //nolint:forcetypeassert // it has no others
		if i := p.index(fence); i >= 0 {
			p.leases[i].End, p.leases[i].By = Broken, by
		}
	}
}

// compare notes what has happened between two views.
func (m *Memory) compare(last, v *View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, old := range last.Rows {
		if now := v.Row(old.Name); now != old {
			m.endedLocked(old, now, v)
		}
	}
	for _, now := range v.Rows {
		if old := last.Row(now.Name); old == nil || !alike(old, now) {
			m.heldLocked(now)
		}
	}
}

// alike reports whether there is nothing to note between two readings of a name.
func alike(a, b *Row) bool {
	return a == b ||
		slices.EqualFunc(a.Holders, b.Holders, func(x, y pawl.Holder) bool { return x.Fence == y.Fence }) &&
			slices.EqualFunc(a.Waiters, b.Waiters, func(x, y pawl.Waiter) bool { return x.Since.Equal(y.Since) })
}

// endedLocked notes which leases of a row are gone. now may be nil.
func (m *Memory) endedLocked(old, now *Row, v *View) {
	at, closed := v.Looked, false
	if now != nil {
		at, closed = now.At, now.ClosedFor > 0
	} else if !at.After(old.At) {
		at = time.Now() // the name was read by itself, and nothing is left of it
	}
	for i := range old.Holders {
		h := &old.Holders[i]
		e := m.names[old.Name]
		if e == nil || now != nil && now.holder(h.Fence) >= 0 {
			continue
		}
		p := e.Value.(*past) //nolint:forcetypeassert // it has no others
		j := p.index(h.Fence)
		if j < 0 {
			continue
		}
		m.order.MoveToFront(e)
		l := &p.leases[j]
		l.Ended, l.Held = at, max(0, at.Add(v.Offset).Sub(h.Since))
		late := at.Sub(old.At) >= h.ExpiresIn
		switch {
		case l.End == Broken: // it was noted
		case !late && closed:
			l.End = Broken
		case !late:
			l.End = Released
		case old.Overdue(i):
			l.End = Expired
		default:
			l.End = Unseen
		}
	}
}

// heldLocked notes who holds and who waits.
func (m *Memory) heldLocked(r *Row) {
	p := m.pastLocked(r.Name)
	for i := range r.Holders {
		h := &r.Holders[i]
		if p.index(h.Fence) >= 0 {
			continue
		}
		l := Past{Fence: h.Fence, Owner: h.Owner, Since: h.Since, End: Held}
		for _, w := range p.waits {
			if w.Owner.Client == h.Owner.Client && w.Weight == h.Weight && w.Since.Before(h.Since) {
				l.Waited = h.Since.Sub(w.Since)
				break
			}
		}
		if p.leases = append(p.leases, l); len(p.leases) > MostLeases {
			p.leases = slices.Delete(p.leases, 0, 1)
		}
	}
	p.waits = r.Waiters
}

// pastLocked is what is known of a name, to which something has happened now.
func (m *Memory) pastLocked(name string) *past {
	if e := m.names[name]; e != nil {
		m.order.MoveToFront(e)
		return e.Value.(*past) //nolint:forcetypeassert // it has no others
	}
	p := &past{name: name}
	m.names[name] = m.order.PushFront(p)
	if m.order.Len() > MostNames {
		oldest := m.order.Remove(m.order.Back()).(*past) //nolint:forcetypeassert // likewise
		delete(m.names, oldest.name)
	}
	return p
}

func (p *past) index(fence uint64) int {
	return slices.IndexFunc(p.leases, func(l Past) bool { return l.Fence == fence })
}
