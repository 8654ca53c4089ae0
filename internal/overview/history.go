package overview

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// The limits of a History.
const (
	MaxHistoryNames  = 1000 // it keeps the names with the latest events
	MaxHistoryLeases = 50   // of each name; it keeps the latest
)

// History records the leases that Run has seen. It compares scans, so it misses a lease
// that began and ended between two of them.
type History struct {
	Began time.Time

	mu    sync.Mutex // protects all below
	names map[string]*nameRecord
	order *list.List // of *nameRecord; the one with the latest event is first
}

type nameRecord struct {
	name    string
	place   *list.Element // in History.order
	leases  []PastLease   // in the order in which they were seen
	waiters []pawl.Waiter
}

// PastLease is one lease, as it was seen.
type PastLease struct {
	Fence  uint64
	Owner  pawl.Owner
	Since  time.Time     // the time of the grant, on the backend's clock
	Waited time.Duration // the time in the queue; 0 if the claim was not seen there
	Held   time.Duration // the time from Since to the end; 0 while it is held
	End    End
	By     string    // with Broken, the person or client that broke it, if known
	Ended  time.Time // when the end was seen, on this process's clock; zero while it is held
}

// End is the kind of a lease's end, as far as scans show it.
type End string

// The ends.
const (
	Held     End = "held"     // it has not ended
	Released End = "released" // it ended before its time was over
	Expired  End = "expired"  // it was not renewed in time
	Broken   End = "broken"   // it was broken here, or ended early while the name was closed
	Unseen   End = "unseen"   // the end was read too late to know its kind
)

// Of returns the leases of a name, the latest first.
func (m *History) Of(name string) []PastLease {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.names[name]
	if p == nil {
		return nil
	}
	leases := slices.Clone(p.leases)
	slices.Reverse(leases)
	return leases
}

// Break records by whom a lease was broken, because the backend does not show that.
func (m *History) Break(name string, fence uint64, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.names[name]; p != nil {
		if i := p.leaseIndex(fence); i >= 0 {
			p.leases[i].End, p.leases[i].By = Broken, by
		}
	}
}

// recordChanges records what has happened between two views.
func (m *History) recordChanges(last, v *View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, old := range last.Rows {
		if now := v.Row(old.Name); now != old {
			m.recordEndsLocked(old, now, v)
		}
	}
	for _, now := range v.Rows {
		if old := last.Row(now.Name); old == nil || !sameClaims(old, now) {
			m.recordClaimsLocked(now)
		}
	}
}

// sameClaims reports whether two readings of a name show no event.
func sameClaims(a, b *Row) bool {
	return a == b ||
		slices.EqualFunc(a.Holders, b.Holders, func(x, y pawl.Holder) bool { return x.Fence == y.Fence }) &&
			slices.EqualFunc(a.Waiters, b.Waiters, func(x, y pawl.Waiter) bool { return x.Since.Equal(y.Since) })
}

// recordEndsLocked records the leases of a row that have ended. now may be nil.
func (m *History) recordEndsLocked(old, now *Row, v *View) {
	at, closed := v.ScannedAt, false
	if now != nil {
		at, closed = now.At, now.ClosedFor > 0
	} else if !at.After(old.At) {
		at = time.Now() // Run has read this name alone
	}
	for i := range old.Holders {
		h := &old.Holders[i]
		p := m.names[old.Name]
		if p == nil || now != nil && now.holder(h.Fence) >= 0 {
			continue
		}
		j := p.leaseIndex(h.Fence)
		if j < 0 {
			continue
		}
		m.order.MoveToFront(p.place)
		l := &p.leases[j]
		l.Ended, l.Held = at, max(0, at.Add(v.Offset).Sub(h.Since))
		leaseOver := at.Sub(old.At) >= h.ExpiresIn
		switch {
		case l.End == Broken: // Break has recorded it
		case !leaseOver && closed:
			l.End = Broken
		case !leaseOver:
			l.End = Released
		case old.Overdue(i):
			l.End = Expired
		default:
			l.End = Unseen
		}
	}
}

// recordClaimsLocked records the holders and the waiters.
func (m *History) recordClaimsLocked(r *Row) {
	p := m.recordLocked(r.Name)
	for i := range r.Holders {
		h := &r.Holders[i]
		if p.leaseIndex(h.Fence) >= 0 {
			continue
		}
		l := PastLease{Fence: h.Fence, Owner: h.Owner, Since: h.Since, End: Held}
		for _, w := range p.waiters {
			if w.Owner.Client == h.Owner.Client && w.Permits == h.Permits && w.Since.Before(h.Since) {
				l.Waited = h.Since.Sub(w.Since)
				break
			}
		}
		if p.leases = append(p.leases, l); len(p.leases) > MaxHistoryLeases {
			p.leases = slices.Delete(p.leases, 0, 1)
		}
	}
	p.waiters = r.Waiters
}

// recordLocked returns the record of a name with an event.
func (m *History) recordLocked(name string) *nameRecord {
	if p := m.names[name]; p != nil {
		m.order.MoveToFront(p.place)
		return p
	}
	p := &nameRecord{name: name}
	m.names[name], p.place = p, m.order.PushFront(p)
	if m.order.Len() > MaxHistoryNames {
		oldest := m.order.Remove(m.order.Back()).(*nameRecord) //nolint:forcetypeassert // it has no others
		delete(m.names, oldest.name)
	}
	return p
}

func (p *nameRecord) leaseIndex(fence uint64) int {
	return slices.IndexFunc(p.leases, func(l PastLease) bool { return l.Fence == fence })
}
