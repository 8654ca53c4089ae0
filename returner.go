package pawl

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/keepalive"
)

// returner gives leases and claims back in the background: those whose release the
// backend did not confirm, those of which nobody knows what became of them, and at Close
// all that are left. Which, and when, is keepalive's to say. It is one timer and as many
// goroutines as requests are under way, keepalive.Out at most.
type returner struct {
	c       *Client
	returns keepalive.Returns[*claim]
	ctx     context.Context // of its requests
	stop    context.CancelFunc

	mu        sync.Mutex // protects all below
	timer     *time.Timer
	finishing bool
	over      bool          // finished is closed
	finished  chan struct{} // when finishing is set and nothing is left, or Close waits no longer
	failure   error         // the last
}

func newReturner(c *Client) *returner {
	r := &returner{c: c, finished: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// undo takes back a claim whose outcome is unknown or no longer wanted: its lease, and
// its place in the queue. It is released at once, so that nobody waits for it, and again
// when no Acquire of its token can come any more.
func (c *Client) undo(cl *claim) {
	ttl := max(cl.TTL, cl.QueueTTL)
	now := time.Now()
	c.returner.add(&keepalive.Return[*claim]{
		Claim: cl, Lease: driver.LeaseRef{Name: cl.Name, Token: cl.Token}, TTL: cl.TTL,
		Again: c.again(cl), Until: c.over(cl, now, ttl),
	}, now)
}

// again is when a claim has to be released once more: when none of its attempts can take
// effect any more, on any node of the backend. It is zero if all were answered.
func (c *Client) again(cl *claim) time.Time {
	if cl.stray == 0 {
		return time.Time{}
	}
	return c.born.Add(cl.stray + driver.MaxLead)
}

// over is when whatever the last attempt of a claim can make has ended by itself. The
// attempt takes effect now, or later.
func (c *Client) over(cl *claim, now time.Time, ttl time.Duration) time.Time {
	if end := c.again(cl); end.After(now) {
		now = end
	}
	return now.Add(ttl + c.facts.Outlasts)
}

// giveBack is undo for a hold.
func (r *returner) giveBack(t *hold, now time.Time) { r.add(t.toReturn(now), now) }

// giveBackLater is giveBack for one that was released, and not answered then; or that was
// answered, and may be granted once more by an attempt that is still under way.
func (r *returner) giveBackLater(t *hold, now time.Time, answered bool) {
	x := t.toReturn(now)
	switch {
	case !answered:
		x.Failed()
		r.add(x, now)
	case now.Before(x.Again):
		x.Lease.MinHold = 0
		r.returns.AddLater(x)
		r.kick()
	}
}

func (t *hold) toReturn(now time.Time) *keepalive.Return[*claim] {
	return &keepalive.Return[*claim]{
		Claim: t.whose(), Lease: t.last(), TTL: t.claim.TTL,
		Again: t.c.again(t.claim), Until: t.c.over(t.claim, now, t.claim.TTL),
	}
}

func (r *returner) add(x *keepalive.Return[*claim], now time.Time) {
	r.returns.Add(x, now)
	r.kick()
}

// kick sends what is due, as far as there is room, and sees to it that what is due later
// will be sent then.
func (r *returner) kick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.over {
		x, wait := r.returns.Take(time.Now())
		if x != nil {
			go r.send(x)
			continue
		}
		switch {
		case wait < 0:
		case r.timer == nil:
			r.timer = time.AfterFunc(wait, r.kick)
		default:
			r.timer.Reset(wait)
		}
		if r.finishing && r.returns.Len() == 0 {
			r.endLocked()
		}
		return
	}
}

func (r *returner) send(x *keepalive.Return[*claim]) {
	defer r.kick()
	c, sent, outcome := r.c, time.Now(), keepalive.Never
	defer func() { r.returns.Answered(x, sent, time.Now(), outcome) }() // also if the driver panics
	ctx := c.attempt(r.ctx, nil, x.TTL, sent)
	err := c.driver.Release(ctx, x.Lease)
	ctx.Cancel()
	switch {
	case err == nil || errors.Is(err, driver.ErrNotHeld):
		outcome = keepalive.Done
		return
	case !errors.Is(err, ErrClosed) && !permanent(err):
		outcome = keepalive.Failed
	}
	err = unavailable(c.backend, "release", x.Lease.Name, err)
	r.mu.Lock()
	r.failure = err
	r.mu.Unlock()
	c.failedAside(x.Claim.later(), "release", 1, err)
}

// finish returns what is closed when nothing is left to give back. Nothing is added after
// that.
func (r *returner) finish() <-chan struct{} {
	r.mu.Lock()
	r.finishing = true
	r.mu.Unlock()
	r.kick()
	return r.finished
}

// lastRound sends everything once more, and not again.
func (r *returner) lastRound() {
	r.returns.LastRound()
	r.kick()
}

// abandon ends what is under way, and says how much was not given back, and why.
func (r *returner) abandon() (left int, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked()
	return r.returns.Left(), r.failure
}

// endLocked sends nothing any more.
func (r *returner) endLocked() {
	if r.over {
		return
	}
	r.over = true
	close(r.finished)
	r.stop()
	if r.timer != nil {
		r.timer.Stop()
	}
}
