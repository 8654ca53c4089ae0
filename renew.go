package pawl

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/trust"
)

// renewer renews all leases of a client and ends those whose term is over. It is one
// goroutine, however many leases there are: they stand in a heap by the time at which
// something is due, and what is due at about the same time goes out as one batch.
//
// A lease is due when it is time to renew it, and again at the end of its term. Only two
// things end it: the backend's word that the token no longer holds, or the end of the term.
// An attempt that fails is repeated until then.
type renewer struct {
	c    *Client
	wake chan struct{} // holds one: look at the heap again

	lanes keepalive.Lanes[*hold] // what is due, until it is sent; their terms may end meanwhile

	mu      sync.Mutex  // protects all below, and hold.due
	heap    byDue       // all holds
	failing int         // how many of them were not answered the last time
	split   int         // and how many of those are in small batches
	trouble atomic.Bool // failing is not 0; read without the mutex
	armed   time.Time   // when run will look again by itself; zero while it does not sleep
	used    bool        // something was scheduled since run looked last
	stopped bool
	emptied chan struct{} // closed when nothing is held; made by who waits for that
}

// renewal is what the renewer knows of a hold.
type renewal struct {
	at     time.Time     // when it is due
	slack  time.Duration // how much earlier it may go along with others
	index  int32         // in the heap, from 1; 0 if it is not in it
	health keepalive.Health
	fails  uint8
	asking bool          // a renewal is under way, or stands in line for a slot
	sent   bool          // it is under way: release waits for it
	check  bool          // ask, whether or not that makes the lease longer
	doubt  atomic.Bool   // a check was asked for, and not answered yet; read without the mutex
	idle   chan struct{} // closed when it no longer is; made by who waits for that
}

const heartbeat = time.Second // how soon it is noticed that the machine slept

func newRenewer(c *Client) *renewer {
	return &renewer{c: c, wake: make(chan struct{}, 1)}
}

// add begins to renew t. It answers false when the renewer was stopped.
func (r *renewer) add(t *hold, now clock.Reading) bool {
	t.mu.Lock()
	left := t.term.Left(now)
	in := keepalive.RenewIn(t.term.TTL(), left)
	t.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	r.schedule(t, now.Mono.Add(in), in/16)
	return true
}

// remove ends the renewing of t. A renewal that is under way goes on, and changes nothing.
func (r *renewer) remove(t *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.due.index > 0 {
		heap.Remove(&r.heap, int(t.due.index)-1)
		r.feels(t, keepalive.Health{})
	}
	r.tellEmpty()
}

// empty is closed when no hold is left. It is asked for when none is added any more.
func (r *renewer) empty() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.emptied == nil {
		r.emptied = make(chan struct{})
	}
	emptied := r.emptied
	r.tellEmpty()
	return emptied
}

// count is how many holds there are.
func (r *renewer) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heap)
}

// tellEmpty tells who waits for it if nothing is held. The caller holds the mutex.
func (r *renewer) tellEmpty() {
	if r.emptied != nil && len(r.heap) == 0 {
		close(r.emptied)
		r.emptied = nil
	}
}

// alive notes that the backend answered: then those that it does not answer are worth
// asking for one by one.
func (r *renewer) alive(now time.Time) {
	if r.trouble.Load() {
		r.lanes.Alive(now)
	}
}

// feels notes the health of t. The caller holds the mutex.
func (r *renewer) feels(t *hold, h keepalive.Health) {
	was := t.due.health
	if was == h {
		return
	}
	t.due.health = h
	r.failing += count(!h.OK()) - count(!was.OK())
	r.split += count(h.Split()) - count(was.Split())
	r.trouble.Store(r.failing > 0)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// settle waits until no renewal of t is under way, or ctx ends.
func (r *renewer) settle(ctx context.Context, t *hold) {
	r.mu.Lock()
	if !t.due.sent {
		r.mu.Unlock()
		return
	}
	if t.due.idle == nil {
		t.due.idle = make(chan struct{})
	}
	idle := t.due.idle
	r.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// check makes holds ask the backend at once; none means all of them.
func (r *renewer) check(some ...*hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.c.now().Mono
	if len(some) == 0 {
		some = slices.Clone(r.heap) // scheduling moves them about
	}
	for _, t := range some {
		if t.due.index == 0 {
			continue // it is over
		}
		t.due.check = true
		t.due.doubt.Store(true)
		if !t.due.asking { // else it asks again after the answer, which may be older than what is to be checked
			r.schedule(t, now, 0)
		}
	}
}

// schedule sets when t is due, and sees to it that run wakes up in time. The caller holds
// the mutex.
func (r *renewer) schedule(t *hold, at time.Time, slack time.Duration) {
	t.due.at, t.due.slack, r.used = at, slack, true
	if t.due.index == 0 {
		heap.Push(&r.heap, t)
	} else {
		heap.Fix(&r.heap, int(t.due.index)-1)
	}
	// Most leases are released long before anything is due: run is woken only if it would
	// sleep too long.
	if !r.armed.IsZero() && at.Before(r.armed) {
		r.armed = time.Time{}
		r.look()
	}
}

// run is the goroutine. It ends when ctx does. last is a reading from before the first lease.
func (r *renewer) run(ctx context.Context, last clock.Reading) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer func() { r.drop(r.lanes.Rest()) }()
	for {
		now := r.c.now()
		slept := now.Slept > last.Slept
		last = now
		over, next := r.due(now, slept)
		for _, t := range over {
			t.expire()
		}
		if wait := r.dispatch(ctx, now.Mono); wait >= 0 {
			next = min(next, wait)
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.wake:
		}
	}
}

// dispatch sends what may go now, and says how long it is until there may be more; negative
// is not before r.wake.
func (r *renewer) dispatch(ctx context.Context, now time.Time) (wait time.Duration) {
	for {
		batch, flight, wait := r.lanes.Take(now)
		if flight == nil {
			return wait
		}
		r.send(ctx, batch, flight)
	}
}

// due puts in line what is to be renewed now, returns those whose term is over, and says
// when to look again. After the machine slept, everything is looked at: the heap is in the
// order of a clock that stood still.
func (r *renewer) due(now clock.Reading, slept bool) (over []*hold, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slept {
		for _, t := range r.heap {
			t.due.at = now.Mono
		}
		heap.Init(&r.heap)
	}
	next = time.Hour // nothing is held: schedule wakes us
	if r.used {
		next = heartbeat // mostly it is released before we look, and soon there is another: none of them has to wake us
	}
	r.used = false
	for len(r.heap) > 0 {
		t := r.heap[0]
		if wait := t.due.at.Add(-t.due.slack).Sub(now.Mono); wait > 0 {
			// Wake at the latest time that serves the first, for others to be due along
			// with it. While anything is held, look at the clocks now and then, to notice
			// that the machine slept.
			next = min(t.due.at.Sub(now.Mono), heartbeat)
			break
		}
		t.mu.Lock()
		left, longer, ttl := t.term.Left(now), t.wire(now).TTL-t.term.LeaseLeft(now), t.wire(now).TTL
		t.mu.Unlock()
		switch {
		case left <= 0:
			heap.Remove(&r.heap, 0)
			r.feels(t, keepalive.Health{})
			over = append(over, t)
			continue
		case t.due.asking || ttl < driver.MinTTL || longer <= 0 && !t.due.check:
			// Under way, or held for as long as it may be: what is left to do is to end it
			// in time.
		default:
			t.due.asking, t.due.check = true, false
			r.lanes.Add(t, t.claim.TTL, t.due.health)
		}
		t.due.at, t.due.slack = now.Mono.Add(left), 0
		heap.Fix(&r.heap, 0)
	}
	r.armed = now.Mono.Add(next)
	return over, next
}

// send renews a batch in a goroutine of its own, so that a backend that does not answer
// holds up nothing else.
func (r *renewer) send(ctx context.Context, batch []*hold, flight *keepalive.Flight) {
	r.mu.Lock()
	batch = slices.DeleteFunc(batch, func(t *hold) bool {
		t.due.sent = t.due.index > 0 // else it was released or lost while it stood in line
		if !t.due.sent {
			t.due.answered()
		}
		return !t.due.sent
	})
	r.mu.Unlock()
	if len(batch) == 0 || !r.c.spawn(func() { r.renew(ctx, batch, flight) }) {
		_ = r.lanes.Landed(flight, time.Time{}, false)
		r.drop(batch) // closing: whoever holds these leases has been told
	}
}

// drop gives up renewals that were not sent. A release that waits for one need not wait any
// more.
func (r *renewer) drop(batch []*hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range batch {
		t.due.answered()
	}
}

// answered notes that no renewal is under way any more. The caller holds the renewer's mutex.
func (d *renewal) answered() {
	d.asking, d.sent = false, false
	if d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// renew makes one attempt for a batch, and schedules what comes next for each.
func (r *renewer) renew(ctx context.Context, batch []*hold, flight *keepalive.Flight) {
	c := r.c
	sent := c.now()
	leases := make([]driver.LeaseRef, len(batch))
	shortest := driver.MaxTTL
	for i, t := range batch {
		leases[i] = t.wire(sent)
		shortest = min(shortest, leases[i].TTL)
	}
	attempt := bound(ctx, sent.Mono.Add(c.renewTimeout(shortest, flight.Again())))
	answers, err := c.driver.Renew(attempt, leases)
	attempt.cancel()
	if err == nil && len(answers) != len(batch) {
		err = errors.New("the driver did not answer for every lease")
	}
	if err != nil {
		err = unavailable(c.backend, "renew", leases[0].Name, err)
	}
	if err != nil && ctx.Err() == nil { // else Close has ended it
		c.failedAside(about(batch), "renew", len(batch), err)
	}
	now := c.now()
	for i, t := range batch {
		answer, unanswered := err, len(batch)
		if err == nil {
			answer, unanswered = answers[i], 1
		}
		r.answered(t, flight, unanswered, sent, now, leases[i].TTL, answer)
	}
	if r.lanes.Landed(flight, now.Mono, err == nil) {
		r.look()
	}
}

// look wakes run.
func (r *renewer) look() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// renewTimeout bounds a renewal, so that there is time to ask again for all but the one
// that hangs: what was in a batch with it is asked for in smaller ones, three times at the
// most.
func (c *Client) renewTimeout(ttl time.Duration, again bool) time.Duration {
	d := c.settings.RequestTimeout
	if d == 0 {
		d = trust.RequestTimeout(ttl)
	}
	if again {
		return min(d, ttl/12)
	}
	return min(d, ttl/3)
}

// about is what the Observer is told a renewal is about: the lease, if it is one.
func about(batch []*hold) Event {
	if len(batch) > 1 {
		return aboutMany(batch[0].claim.Name)
	}
	return batch[0].whose().later()
}

// answered deals with the answer to one renewal. If it failed, so did that many of its
// batch in all.
func (r *renewer) answered(t *hold, f *keepalive.Flight, failed int, sent, now clock.Reading, ttl time.Duration, err error) {
	t.mu.Lock()
	if err == nil {
		t.term = t.term.Renewed(sent, ttl, t.claim.marginOf(ttl))
	}
	t.trouble = err
	left := t.term.Left(now)
	t.mu.Unlock()

	r.mu.Lock()
	t.due.answered()
	if t.due.index > 0 { // else it was released, or lost, while the answer was under way
		in := keepalive.RenewIn(t.claim.TTL, left)
		t.due.fails = min(t.due.fails+1, 200)
		if err != nil {
			in = min(keepalive.RetryIn(int(t.due.fails), t.claim.TTL), left)
			t.due.check = true // whatever it was sent for has not been done
			r.feels(t, r.lanes.Failed(f, failed, r.split, t.due.health))
		} else {
			t.due.fails = 0
			r.feels(t, keepalive.Health{})
			if t.due.check {
				in = 0
			} else {
				t.due.doubt.Store(false) // what was asked was sent after the last signal
			}
		}
		r.schedule(t, now.Mono.Add(in), in/16)
	}
	r.mu.Unlock()

	if errors.Is(err, driver.ErrNotHeld) {
		t.lose(notHeld(sent.Mono, err))
	}
}

// notHeld is the loss that the backend told us of, in answer to a request sent then.
func notHeld(sent time.Time, err error) LostError {
	lost := LostError{Reason: ReasonExpired, Until: sent}
	if broken, ok := errors.AsType[*driver.BrokenError](err); ok {
		// It stays closed for ClosedFor after it handled our request, which was later than
		// we sent it.
		lost.Reason, lost.By, lost.Until = ReasonBroken, broken.By, sent.Add(broken.ClosedFor)
	}
	return lost
}

// stop ends the taking of new holds, and returns those that are left.
func (r *renewer) stop() []*hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	return slices.Clone(r.heap)
}

// byDue is the heap: container/heap's five methods.
type byDue []*hold

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.at.Before(h[j].due.at) }
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].due.index, h[j].due.index = int32(i+1), int32(j+1)
}

func (h *byDue) Push(x any) {
	t := x.(*hold) //nolint:forcetypeassert // container/heap's signature; only schedule calls it
	*h = append(*h, t)
	t.due.index = int32(len(*h))
}

func (h *byDue) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.due.index = 0
	return t
}
