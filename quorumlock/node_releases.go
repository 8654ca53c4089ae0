package quorumlock

import (
	"container/heap"
	"context"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// nodeReleases are the pending releases of one node.
type nodeReleases struct {
	waiting    releaseHeap // the releases to send, in the order of their times
	sending    int         // releases under way
	fails      int         // failed releases in a row
	pauseUntil time.Time   // the node failed, and gets no release until then
	timer      *time.Timer
	timerFor   time.Time
}

const releasesAtOnce = 8 // releases to one node at a time

// planNextLocked decides the next step after the answer to a release.
func (o *pendingReleases) planNextLocked(b *pendingRelease, err error) {
	now := time.Now()
	switch {
	case isFinal(err) && b.acquireArrivesUntil.After(now):
		b.sendAt, b.tries = b.acquireArrivesUntil, 0
	case isFinal(err), b.usefulUntil.Before(now):
		b.mustSend = false
		o.forgetSettledLocked(b)
		return
	default:
		b.sendAt = now.Add(pauseAfter(b.tries))
		b.tries++
	}
	o.enqueueLocked(b)
}

// pauseAfter returns the time to wait after n+1 failures.
func pauseAfter(n int) time.Duration {
	return backoff.Doubled(10*time.Millisecond, n, 1280*time.Millisecond) + backoff.Below(10*time.Millisecond)
}

// enqueueLocked queues a release for its time. If it is under way, send queues it again.
func (o *pendingReleases) enqueueLocked(b *pendingRelease) {
	if b.inFlight != nil {
		b.dueAgain = true
		return
	}
	line := &o.nodes[b.node].waiting
	if b.index == 0 {
		heap.Push(line, b)
	} else {
		heap.Fix(line, b.index-1)
	}
}

func (o *pendingReleases) dequeueLocked(b *pendingRelease) {
	b.mustSend, b.dueAgain = false, false
	if b.index > 0 {
		heap.Remove(&o.nodes[b.node].waiting, b.index-1)
	}
}

// sendDueLocked sends a node the releases that are due.
func (o *pendingReleases) sendDueLocked(i int) {
	c := &o.nodes[i]
	for len(c.waiting) > 0 {
		width := releasesAtOnce
		if c.fails > 0 {
			width = 1
		}
		if c.sending >= width {
			return // send calls sendDueLocked again when a release ends
		}
		b := c.waiting[0]
		if at := later(b.sendAt, c.pauseUntil); at.After(time.Now()) {
			o.wakeLocked(i, at)
			return
		}
		if o.d.begin(o.d.life) != nil {
			return // closed
		}
		heap.Pop(&c.waiting)
		c.sending++
		b.inFlight = make(chan struct{})
		l, ttl := b.lease, b.ttl
		go func() {
			defer o.d.work.Done()
			o.send(b, l, ttl)
		}()
	}
}

// wakeLocked makes sendDueLocked run at that time.
func (o *pendingReleases) wakeLocked(i int, at time.Time) {
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
		o.sendDueLocked(i)
	})
}

// send makes one attempt at a release.
func (o *pendingReleases) send(b *pendingRelease, l driver.LeaseRef, ttl time.Duration) {
	ctx, cancel := context.WithTimeout(o.d.life, min(3*time.Second, max(ttl/6, 10*time.Millisecond)))
	end := driver.End(ctx)
	err := o.d.nodes[b.node].Release(ctx, l)
	cancel()

	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.nodes[b.node]
	c.sending--
	if isFinal(err) {
		c.fails, c.pauseUntil = 0, time.Time{}
	} else {
		c.pauseUntil = time.Now().Add(pauseAfter(c.fails))
		c.fails++
		b.releaseArrivesUntil = later(b.releaseArrivesUntil, end.Add(driver.MaxLead))
	}
	close(b.inFlight)
	b.inFlight = nil
	switch {
	case b.mustSend && b.dueAgain:
		b.dueAgain = false
		o.enqueueLocked(b)
	case b.mustSend:
		o.planNextLocked(b, err)
	default:
		o.forgetSettledLocked(b)
	}
	o.sendDueLocked(b.node)
}

// stop ends all timers, after the driver was closed.
func (o *pendingReleases) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.nodes {
		if t := o.nodes[i].timer; t != nil {
			t.Stop()
		}
	}
}

// releaseHeap implements heap.Interface with the five methods below.
type releaseHeap []*pendingRelease

func (h releaseHeap) Len() int           { return len(h) }
func (h releaseHeap) Less(i, j int) bool { return h[i].sendAt.Before(h[j].sendAt) }
func (h releaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *releaseHeap) Push(x any) {
	b := x.(*pendingRelease) //nolint:forcetypeassert // container/heap's signature; only pendingReleases calls it
	*h = append(*h, b)
	b.index = len(*h)
}

func (h *releaseHeap) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	b.index = 0
	return b
}
