package quorumlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/pause"
)

// What is owed to a node is a release: of a claim that it may have granted, or may yet
// grant, and that nobody wants. It is told until it has heard, and if an Acquire there
// was not answered, once more after the end of that.
//
// A token may be claimed again while a release is owed, or under way: a place is given
// back and taken again. So all these releases have an end, too, and the claim waits for
// it: a sequence keeps the order in which requests are answered, not that in which they
// arrive.
//
// There is one list for the driver, not a goroutine for each release. A node that fails
// is asked by one release at a time, less and less often.
type owed struct {
	d     *Driver
	known atomic.Int64 // how many are in all, to be looked at without the mutex

	mu     sync.Mutex // protects what follows
	all    map[dueAt]*debt
	nodes  []creditor
	purge  int // how many there may be before those that are settled are looked for
	purged time.Time
}

// dueAt says which claim, on which node.
type dueAt struct {
	node  int
	token driver.Token
	name  string
}

// A debt is what we know of a claim on a node that has not answered one of its requests.
type debt struct {
	dueAt
	strays time.Time // until then an Acquire may arrive that was not answered
	bar    time.Time // until then a Release may

	lease driver.LeaseRef // how to release it
	ttl   time.Duration
	owing bool      // it is to be released
	until time.Time // there is no use in it after that
	next  time.Time // when to tell it
	tries int
	index int           // in the line of its node, from 1; 0 if it is not there
	told  chan struct{} // there while it is told; closed when that ends
	again bool          // it came to be owed anew meanwhile, maybe by what arrives behind that
}

const mostOwed = 1 << 16 // more is left to expire

func newOwed(d *Driver) *owed {
	return &owed{d: d, all: map[dueAt]*debt{}, nodes: make([]creditor, len(d.nodes))}
}

// atLocked finds a debt, or makes one; nil if there are too many.
func (o *owed) atLocked(k dueAt) *debt {
	b := o.all[k]
	if b != nil {
		return b
	}
	if now := time.Now(); len(o.all) >= o.purge || len(o.all) >= mostOwed && now.Sub(o.purged) > time.Second {
		for _, b := range o.all {
			if b.until.Before(now) && b.index > 0 {
				o.unlineLocked(b)
			}
			o.tidyLocked(b)
		}
		o.purge, o.purged = 2*len(o.all)+64, now
	}
	if len(o.all) >= mostOwed {
		return nil
	}
	b = &debt{dueAt: k}
	o.all[k] = b
	o.known.Add(1)
	return b
}

// tidyLocked forgets a debt that is settled.
func (o *owed) tidyLocked(b *debt) {
	if now := time.Now(); !b.owing && b.told == nil && b.strays.Before(now) && b.bar.Before(now) && o.all[b.dueAt] == b {
		delete(o.all, b.dueAt)
		o.known.Add(-1)
	}
}

// claim waits until a token may be claimed on a node: it is owed no release any more, and
// none that was sent can arrive.
func (o *owed) claim(ctx context.Context, k dueAt) error {
	for o.known.Load() > 0 {
		o.mu.Lock()
		b := o.all[k]
		if b == nil {
			o.mu.Unlock()
			return nil
		}
		o.unlineLocked(b)
		told, bar := b.told, time.Until(b.bar)
		o.mu.Unlock()
		switch {
		case told != nil:
			select {
			case <-told:
			case <-ctx.Done():
				return ctx.Err()
			}
		case bar > 0:
			if err := pause.For(ctx, bar); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// unanswered notes that an Acquire may arrive until end. No release before that is the
// last.
func (o *owed) unanswered(k dueAt, end time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.atLocked(k); b != nil {
		b.strays = later(b.strays, end.Add(driver.MaxLead))
	}
}

// released notes what came of a release with this end. What is left to do is done in the
// background, unless the claim goes on.
func (o *owed) released(k dueAt, l driver.LeaseRef, ttl time.Duration, end time.Time, err error, goesOn bool) {
	if told(err) && o.known.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.all[k]
	if b == nil && !told(err) {
		b = o.atLocked(k)
	}
	if b == nil {
		return
	}
	if !told(err) {
		b.bar = later(b.bar, end.Add(driver.MaxLead))
	}
	if !goesOn {
		o.oweLocked(b, l, ttl)
		o.planLocked(b, err)
		o.pumpLocked(k.node)
	}
}

// owes has a claim released on a node.
func (o *owed) owes(k dueAt, l driver.LeaseRef, ttl time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.atLocked(k); b != nil {
		o.oweLocked(b, l, ttl)
		b.next = time.Now()
		o.enlineLocked(b)
		o.pumpLocked(k.node)
	}
}

// oweLocked notes how it is to be released, and for how long there is any use in that.
func (o *owed) oweLocked(b *debt, l driver.LeaseRef, ttl time.Duration) {
	l.OnTime = true
	b.owing, b.lease, b.ttl, b.tries = true, l, ttl, 0
	b.until = later(time.Now(), b.strays).Add(ttl)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
