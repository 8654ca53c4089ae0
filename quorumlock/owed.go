package quorumlock

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// What is owed to a node is a release: of a claim that it may have granted, or may yet grant,
// and that nobody wants. It is told until it has heard, and if an Acquire there was not
// answered, once more after the end of that.
//
// A token may be claimed again while a release is owed, or under way: a place is given back and
// taken again. So all these releases have an end, too, and the claim waits for it: lanes keep
// the order in which requests are answered, not that in which they arrive.
//
// There is one list for the driver, not a goroutine for each release. A node that fails is
// asked by one release at a time, less and less often.
type owed struct {
	d     *Driver
	known atomic.Int64 // how many are in all, to be looked at without the mutex

	mu     sync.Mutex // protects what follows
	all    map[dueAt]*debt
	nodes  []creditor
	purge  int // how many there may be before those that are settled are looked for
	purged time.Time
}

// A creditor is a node that something is owed to.
type creditor struct {
	line     debts     // what is to be told, in the order of its times
	sending  int       // releases under way
	fails    int       // in a row
	rest     time.Time // it failed, and is left alone until then
	timer    *time.Timer
	timerFor time.Time
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

const (
	mostOwed = 1 << 16 // more is left to expire
	abreast  = 8       // releases to one node at a time
)

func newOwed(d *Driver) *owed {
	return &owed{d: d, all: map[dueAt]*debt{}, nodes: make([]creditor, len(d.nodes))}
}

// at finds a debt, or makes one; nil if there are too many. The caller holds the mutex.
func (o *owed) at(k dueAt) *debt {
	b := o.all[k]
	if b != nil {
		return b
	}
	if now := time.Now(); len(o.all) >= o.purge || len(o.all) >= mostOwed && now.Sub(o.purged) > time.Second {
		for _, b := range o.all {
			if b.until.Before(now) && b.index > 0 {
				o.unline(b)
			}
			o.tidy(b)
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

// tidy forgets a debt that is settled. The caller holds the mutex.
func (o *owed) tidy(b *debt) {
	if now := time.Now(); !b.owing && b.told == nil && b.strays.Before(now) && b.bar.Before(now) && o.all[b.dueAt] == b {
		delete(o.all, b.dueAt)
		o.known.Add(-1)
	}
}

// claim waits until a token may be claimed on a node: it is owed no release any more, and none
// that was sent can arrive.
func (o *owed) claim(ctx context.Context, k dueAt) error {
	for o.known.Load() > 0 {
		o.mu.Lock()
		b := o.all[k]
		if b == nil {
			o.mu.Unlock()
			return nil
		}
		o.unline(b)
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
			if err := rest(ctx, bar); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// unanswered notes that an Acquire may arrive until end. No release before that is the last.
func (o *owed) unanswered(k dueAt, end time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.at(k); b != nil {
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
		b = o.at(k)
	}
	if b == nil {
		return
	}
	if !told(err) {
		b.bar = later(b.bar, end.Add(driver.MaxLead))
	}
	if !goesOn {
		o.owe(b, l, ttl)
		o.plan(b, err)
		o.pump(k.node)
	}
}

// owes has a claim released on a node.
func (o *owed) owes(k dueAt, l driver.LeaseRef, ttl time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.at(k); b != nil {
		o.owe(b, l, ttl)
		b.next = time.Now()
		o.enline(b)
		o.pump(k.node)
	}
}

// owe notes how it is to be released, and for how long there is any use in that. The caller
// holds the mutex.
func (o *owed) owe(b *debt, l driver.LeaseRef, ttl time.Duration) {
	l.OnTime = true
	b.owing, b.lease, b.ttl, b.tries = true, l, ttl, 0
	b.until = later(time.Now(), b.strays).Add(ttl)
}

// plan says what comes after a release that was answered so. The caller holds the mutex.
func (o *owed) plan(b *debt, err error) {
	now := time.Now()
	switch {
	case told(err) && b.strays.After(now):
		b.next, b.tries = b.strays, 0
	case told(err), b.until.Before(now):
		b.owing = false
		o.tidy(b)
		return
	default:
		b.next = now.Add(pauseAfter(b.tries))
		b.tries++
	}
	o.enline(b)
}

// pauseAfter is how long to wait after n failures and one.
func pauseAfter(n int) time.Duration {
	return backoff.Doubled(10*time.Millisecond, n, 1280*time.Millisecond) + backoff.Below(10*time.Millisecond)
}

// enline has it told at its time. What is being told comes back by itself. The caller holds the
// mutex.
func (o *owed) enline(b *debt) {
	if b.told != nil {
		b.again = true
		return
	}
	line := &o.nodes[b.node].line
	if b.index == 0 {
		heap.Push(line, b)
	} else {
		heap.Fix(line, b.index-1)
	}
}

// unline ends the owing. The caller holds the mutex.
func (o *owed) unline(b *debt) {
	b.owing, b.again = false, false
	if b.index > 0 {
		heap.Remove(&o.nodes[b.node].line, b.index-1)
	}
}

// pump tells a node what it is time to tell it. The caller holds the mutex.
func (o *owed) pump(i int) {
	c := &o.nodes[i]
	for len(c.line) > 0 {
		width := abreast
		if c.fails > 0 {
			width = 1
		}
		if c.sending >= width {
			return // whoever ends comes back
		}
		b := c.line[0]
		if at := later(b.next, c.rest); at.After(time.Now()) {
			o.wake(i, at)
			return
		}
		if o.d.begin(o.d.life) != nil {
			return // closed
		}
		heap.Pop(&c.line)
		c.sending++
		b.told = make(chan struct{})
		l, ttl := b.lease, b.ttl
		go func() {
			defer o.d.work.Done()
			o.tell(b, l, ttl)
		}()
	}
}

// wake comes back at that time. The caller holds the mutex.
func (o *owed) wake(i int, at time.Time) {
	c := &o.nodes[i]
	if c.timer != nil {
		if !at.Before(c.timerFor) && c.timerFor.After(time.Now()) {
			return
		}
		c.timer.Stop()
	}
	c.timerFor = at
	c.timer = time.AfterFunc(time.Until(at), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.pump(i)
	})
}

// tell makes one attempt.
func (o *owed) tell(b *debt, l driver.LeaseRef, ttl time.Duration) {
	ctx, cancel := context.WithTimeout(o.d.life, min(3*time.Second, max(ttl/6, 10*time.Millisecond)))
	end := driver.End(ctx)
	err := o.d.nodes[b.node].Release(ctx, l)
	cancel()

	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.nodes[b.node]
	c.sending--
	if told(err) {
		c.fails, c.rest = 0, time.Time{}
	} else {
		c.rest = time.Now().Add(pauseAfter(c.fails))
		c.fails++
		b.bar = later(b.bar, end.Add(driver.MaxLead))
	}
	close(b.told)
	b.told = nil
	switch {
	case b.owing && b.again:
		b.again = false
		o.enline(b)
	case b.owing:
		o.plan(b, err)
	default:
		o.tidy(b)
	}
	o.pump(b.node)
}

// stop ends all timers. The driver is closed.
func (o *owed) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.nodes {
		if t := o.nodes[i].timer; t != nil {
			t.Stop()
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// debts is the heap: container/heap's five methods.
type debts []*debt

func (h debts) Len() int           { return len(h) }
func (h debts) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h debts) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *debts) Push(x any) {
	b := x.(*debt) //nolint:forcetypeassert // container/heap's signature; only owed calls it
	*h = append(*h, b)
	b.index = len(*h)
}

func (h *debts) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	b.index = 0
	return b
}
