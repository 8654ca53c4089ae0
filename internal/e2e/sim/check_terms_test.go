package sim

import (
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// terms records the ends of leases, counted from the sending of the successful request.
// The keys are the tokens, which a lease keeps when another process attaches it.
type terms struct {
	mu      sync.Mutex // protects the map, and what is in it
	byToken map[driver.Token]*term
}

// A term is the backend's promise for one token.
type term struct {
	name   string
	first  uint64 // its fences, once it is granted
	fences uint64
	until  moment
}

// promised records a successful answer: the lease lasts for ttl from sent on, or the
// place in the queue does, which a signal may turn into a lease.
func (t *terms) promised(name string, token driver.Token, sent moment, ttl time.Duration) *term {
	x := t.byToken[token]
	if x == nil {
		x = &term{name: name}
		t.byToken[token] = x
	}
	margin := min(max(ttl/10, 10*time.Millisecond), ttl/2) // the default of WithGrace
	x.until = max(x.until, sent+ttl-margin)
	return x
}

func (t *terms) noteRenewal(l driver.LeaseRef, sent moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promised(l.Name, l.Token, sent, l.TTL)
}

func (t *terms) noteQueued(c *driver.Claim, sent moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promised(c.Name, c.Token, sent, c.QueueTTL)
}

func (t *terms) noteGrant(c *driver.Claim, sent moment, g driver.Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.promised(c.Name, c.Token, sent, min(g.TTL, c.TTL))
	x.first, x.fences = g.Fence, uint64(max(g.Fences, 1))
}

// noteSignal records the fences of a lease that a signal granted.
func (t *terms) noteSignal(s driver.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byToken[s.Token]; x != nil {
		x.first, x.fences = s.Fence, uint64(max(s.Fences, 1))
	}
}

// checkDeadline checks the rule of terms: no Deadline is later than the backend's promise
// allows, less the margin. So a term counts from the sending of a request, not from its
// answer.
func (h *history) checkDeadline(c *call, lease *pawl.Lease) {
	if lease == nil {
		return
	}
	deadline, promised := lease.Deadline().Sub(h.w.start)+h.w.planted.confirmDelay(c), moment(-1)
	t := &h.w.terms
	t.mu.Lock()
	for _, x := range t.byToken {
		if x.name == c.name && c.fence >= x.first && c.fence < x.first+x.fences {
			promised = max(promised, x.until)
		}
	}
	t.mu.Unlock()
	if promised >= 0 && deadline > promised {
		h.w.violated(c.name, "%v is trusted until %v, but the backend promised it until %v", c, deadline, promised)
	}
}

// confirmDelay returns the error of a term that counts from the answer to Confirm, which
// is a planted bug.
func (b planted) confirmDelay(c *call) time.Duration {
	if n := len(c.confirmed); b.countsFromAnswer && n > 0 && c.confirmed[n-1].err == nil {
		return c.confirmed[n-1].answered - c.confirmed[n-1].sent
	}
	return 0
}
