package quorumlock

import (
	"container/heap"
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// A creditor is a node that something is owed to.
type creditor struct {
	line     debts     // what is to be told, in the order of its times
	sending  int       // releases under way
	fails    int       // in a row
	rest     time.Time // it failed, and is left alone until then
	timer    *time.Timer
	timerFor time.Time
}

const abreast = 8 // releases to one node at a time

// planLocked says what comes after a release that was answered so.
func (o *owed) planLocked(b *debt, err error) {
	now := time.Now()
	switch {
	case told(err) && b.strays.After(now):
		b.next, b.tries = b.strays, 0
	case told(err), b.until.Before(now):
		b.owing = false
		o.tidyLocked(b)
		return
	default:
		b.next = now.Add(pauseAfter(b.tries))
		b.tries++
	}
	o.enlineLocked(b)
}

// pauseAfter is how long to wait after n failures and one.
func pauseAfter(n int) time.Duration {
	return backoff.Doubled(10*time.Millisecond, n, 1280*time.Millisecond) + backoff.Below(10*time.Millisecond)
}

// enlineLocked has it told at its time. What is being told comes back by itself.
func (o *owed) enlineLocked(b *debt) {
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

func (o *owed) unlineLocked(b *debt) {
	b.owing, b.again = false, false
	if b.index > 0 {
		heap.Remove(&o.nodes[b.node].line, b.index-1)
	}
}

// pumpLocked tells a node what it is time to tell it.
func (o *owed) pumpLocked(i int) {
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
			o.wakeLocked(i, at)
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

// wakeLocked comes back at that time.
func (o *owed) wakeLocked(i int, at time.Time) {
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
		o.pumpLocked(i)
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
		o.enlineLocked(b)
	case b.owing:
		o.planLocked(b, err)
	default:
		o.tidyLocked(b)
	}
	o.pumpLocked(b.node)
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
