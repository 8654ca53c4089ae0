package quorumlock

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/returner"
)

// pendingReleases are the releases of unwanted claims that a node may have granted, or
// may still grant. Each node has a returner.Returner, which sends a release until the
// node has answered it. If an Acquire was not answered, it sends the release once more
// after the end of that Acquire.
//
// A client may claim with the same token again while a release is pending, for example
// after it gave up a place. So each release has an end, too, and the new claim waits for
// that end. A sequence (sequence.go) is not enough, because a request that was given up
// may still arrive.
type pendingReleases struct {
	d     *quorum
	nodes []*returner.Returner[*pendingRelease]

	mu       sync.Mutex // protects the fields below
	byClaim  map[nodeClaim]*pendingRelease
	purgeAt  int // the length of byClaim at which settled releases are removed
	purgedAt time.Time
}

// nodeClaim identifies a claim on a node.
type nodeClaim struct {
	node  int
	token driver.Token
	name  string
}

// A pendingRelease is the state of a claim on a node that has not answered a request of
// the claim.
type pendingRelease struct {
	nodeClaim
	acquireArrivesUntil time.Time // an unanswered Acquire may arrive until then
	releaseArrivesUntil time.Time // a Release may arrive until then

	due *dueRelease // the release to send; nil if there is none
}

type dueRelease = returner.Return[*pendingRelease]

const (
	maxPendingReleases = 1 << 16 // further leases are left to expire on their nodes
	maxRequestsPerNode = 8       // requests to one node at a time
)

func newPendingReleases(d *quorum) *pendingReleases {
	p := &pendingReleases{d: d, byClaim: map[nodeClaim]*pendingRelease{}}
	for range d.nodes {
		p.nodes = append(p.nodes, returner.New(maxRequestsPerNode, p.send))
	}
	return p
}

// findOrAddLocked finds or adds a pending release. It returns nil if there are too many.
func (p *pendingReleases) findOrAddLocked(k nodeClaim) *pendingRelease {
	rel := p.byClaim[k]
	if rel != nil {
		return rel
	}
	if now := time.Now(); len(p.byClaim) >= p.purgeAt || len(p.byClaim) >= maxPendingReleases && now.Sub(p.purgedAt) > time.Second {
		for _, rel := range p.byClaim {
			if rel.due != nil && rel.due.Until.Before(now) {
				rel.due = nil
			}
			p.forgetSettledLocked(rel)
		}
		p.purgeAt, p.purgedAt = 2*len(p.byClaim)+64, now
	}
	if len(p.byClaim) >= maxPendingReleases {
		return nil
	}
	rel = &pendingRelease{nodeClaim: k}
	p.byClaim[k] = rel
	return rel
}

// forgetSettledLocked removes a release if it need not be sent, and no request can arrive
// any more.
func (p *pendingReleases) forgetSettledLocked(rel *pendingRelease) {
	if now := time.Now(); rel.due == nil && rel.acquireArrivesUntil.Before(now) && rel.releaseArrivesUntil.Before(now) && p.byClaim[rel.nodeClaim] == rel {
		delete(p.byClaim, rel.nodeClaim)
	}
}

// awaitClaimable waits until a claim with a token may be sent to a node. It cancels a
// pending release of the token there, and waits until no release that was sent can
// arrive.
func (p *pendingReleases) awaitClaimable(ctx context.Context, k nodeClaim) error {
	wait := time.Duration(0)
	p.mu.Lock()
	if rel := p.byClaim[k]; rel != nil {
		p.cancelLocked(rel)
		wait = time.Until(rel.releaseArrivesUntil)
	}
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return backoff.Wait(ctx, wait)
}

// recordUnansweredAcquire records that an Acquire may arrive until end. So a release
// before end is not the last one.
func (p *pendingReleases) recordUnansweredAcquire(k nodeClaim, end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rel := p.findOrAddLocked(k); rel != nil {
		rel.acquireArrivesUntil = later(rel.acquireArrivesUntil, end.Add(driver.MaxLead))
	}
}

// recordRelease records the result of a release on a node that may arrive until end. It
// schedules further releases in the background, unless claimContinues.
func (p *pendingReleases) recordRelease(i int, l driver.LeaseRef, end time.Time, err error, claimContinues bool) {
	k, now, final := nodeClaim{i, l.Token, l.Name}, time.Now(), isFinal(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if final && p.byClaim[k] == nil {
		return
	}
	rel := p.findOrAddLocked(k)
	if rel == nil {
		return
	}
	if !final {
		rel.releaseArrivesUntil = later(rel.releaseArrivesUntil, end.Add(driver.MaxLead))
	}
	switch {
	case claimContinues:
	case final && !now.Before(rel.acquireArrivesUntil):
		p.cancelLocked(rel)
		p.forgetSettledLocked(rel)
	default:
		p.scheduleLocked(rel, l)
		p.nodes[i].AddSent(rel.due, now, final)
	}
}

// release makes a release of a claim due on a node.
func (p *pendingReleases) release(i int, l driver.LeaseRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rel := p.findOrAddLocked(nodeClaim{i, l.Token, l.Name}); rel != nil {
		p.scheduleLocked(rel, l)
		p.nodes[i].Add(rel.due)
	}
}

// scheduleLocked sets the release to send for a claim. It is sent until no Acquire can
// arrive any more, and for the TTL of the lease after that, at most.
func (p *pendingReleases) scheduleLocked(rel *pendingRelease, l driver.LeaseRef) {
	p.cancelLocked(rel)
	l.HasEnd = true
	rel.due = &dueRelease{Claim: rel, Lease: l, TTL: l.TTL, ReleaseAgainAt: rel.acquireArrivesUntil, Until: later(time.Now(), rel.acquireArrivesUntil).Add(l.TTL)}
}

func (p *pendingReleases) cancelLocked(rel *pendingRelease) {
	if rel.due != nil {
		p.nodes[rel.node].Cancel(rel.due)
		rel.due = nil
	}
}

// send makes one attempt at a release, for the Returner of its node. It waits for the
// token's other requests to that node, but no longer than for an answer, because it is
// one of the few requests that the Returner may have under way.
func (p *pendingReleases) send(_ context.Context, r *dueRelease, sent time.Time) (returner.Outcome, error) {
	rel, d := r.Claim, p.d
	if d.beginOperation(d.requestsCtx) != nil {
		return returner.Unanswerable, nil
	}
	defer d.work.Done()
	v := poll(context.Background(), d, pollRequest[returner.Outcome]{
		nodes: []int{rel.node}, token: rel.token, timeout: min(3*time.Second, max(r.TTL/6, 10*time.Millisecond)),
		send: func(ctx context.Context, _ int) (returner.Outcome, error) { return p.sendInOrder(ctx, r, sent) },
	})[rel.node]
	if v.err != nil {
		return returner.Failed, v.err
	}
	return v.value, nil
}

func (p *pendingReleases) sendInOrder(ctx context.Context, r *dueRelease, sent time.Time) (returner.Outcome, error) {
	rel, end := r.Claim, driver.End(ctx)
	p.mu.Lock()
	cancelled, previous := rel.due != r, rel.releaseArrivesUntil
	if !cancelled {
		rel.releaseArrivesUntil = later(previous, end.Add(driver.MaxLead))
	}
	p.mu.Unlock()
	if cancelled {
		return returner.Unanswerable, nil
	}
	err := p.d.nodes[rel.node].Release(ctx, r.Lease)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isFinal(err) {
		return returner.Failed, err
	}
	rel.releaseArrivesUntil = previous
	switch {
	case sent.Before(rel.acquireArrivesUntil):
		r.ReleaseAgainAt = rel.acquireArrivesUntil
	case rel.due == r:
		rel.due = nil
		p.forgetSettledLocked(rel)
	}
	return returner.Done, nil
}

func (p *pendingReleases) stop() {
	for _, n := range p.nodes {
		_, _ = n.Abandon()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
