package sim

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// queue records the claims that wait in the backend, for the rule of FIFO: a claim that
// was surely in the queue before another claim came, and kept its place, is granted
// first.
//
// Exceptions are leases that are passed on inside a process for a bounded time;
// conditional claims, which may lose their place; forced claims; and places that a shock
// may have removed. In a quorum, the claim has to be on a majority of the nodes, and the
// order is the order of tickets.
type queue struct {
	mu      sync.Mutex // protects all
	places  []*place
	tickets tickets // over a quorum
}

func (q *queue) placeOf(token driver.Token) *place {
	for _, p := range q.places {
		if p.token == token {
			return p
		}
	}
	return nil
}

func (q *queue) noteRequest(p *process, c driver.Claim, sent moment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if known := q.placeOf(c.Token); known != nil {
		known.lastSent = sent
	} else {
		q.places = append(q.places, &place{
			name: c.Name, token: c.Token, process: p.number, weight: c.Weight, limit: c.Limit, queueTTL: c.QueueTTL, queues: c.Queue && c.ValueBelow == nil, conditional: c.ValueBelow != nil, firstSent: sent, lastSent: sent, queuedFrom: never,
		})
	}
}

// noteQueued records the answer "queued" to a request.
func (q *queue) noteQueued(w *world, token driver.Token, sent moment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.placeOf(token)
	if p.queuedFrom == never || w.now() >= p.keptFrom+p.queueTTL { // the place may be new
		p.queuedFrom = w.now()
	}
	p.keptFrom = sent
}

func (q *queue) noteEnd(token driver.Token) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.placeOf(token); p != nil {
		p.over = true
	}
}

// noteGrant records a grant, and checks that the granted claim passed no other claim.
func (q *queue) noteGrant(w *world, token driver.Token, force bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.placeOf(token)
	if b == nil || b.over {
		return
	}
	b.over = true
	if force {
		return
	}
	now := w.now()
	for _, a := range q.places {
		if a.name != b.name || a.over || a.conditional || a.queuedFrom == never || a.queuedFrom >= b.firstSent {
			continue
		}
		conflict := int64(a.weight)+int64(b.weight) > int64(b.limit) // otherwise a may have an unknown grant
		keeps := now < a.keptFrom+a.queueTTL-a.queueTTL/500
		if !conflict || !keeps || w.plan.backend == "quorum" && !q.passes(w, b, a) {
			continue
		}
		w.history.mu.Lock()
		if !w.history.shockedLocked(a.name, a.queuedFrom-w.maxStepTime(), now) {
			w.history.violatedLocked(a.name, "FIFO: a claim of process %d, which came at %v, was granted before a claim of process %d, which was in the queue from %v on",
				b.process, b.firstSent, a.process, a.queuedFrom)
		}
		w.history.mu.Unlock()
	}
}
