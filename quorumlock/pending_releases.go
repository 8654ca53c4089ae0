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
	o := &pendingReleases{d: d, byClaim: map[nodeClaim]*pendingRelease{}}
	for range d.nodes {
		o.nodes = append(o.nodes, returner.New(maxRequestsPerNode, o.send))
	}
	return o
}

// findOrAddLocked finds or adds a pending release. It returns nil if there are too many.
func (o *pendingReleases) findOrAddLocked(k nodeClaim) *pendingRelease {
	b := o.byClaim[k]
	if b != nil {
		return b
	}
	if now := time.Now(); len(o.byClaim) >= o.purgeAt || len(o.byClaim) >= maxPendingReleases && now.Sub(o.purgedAt) > time.Second {
		for _, b := range o.byClaim {
			if b.due != nil && b.due.Until.Before(now) {
				b.due = nil
			}
			o.forgetSettledLocked(b)
		}
		o.purgeAt, o.purgedAt = 2*len(o.byClaim)+64, now
	}
	if len(o.byClaim) >= maxPendingReleases {
		return nil
	}
	b = &pendingRelease{nodeClaim: k}
	o.byClaim[k] = b
	return b
}

// forgetSettledLocked removes a release if it need not be sent, and no request can arrive
// any more.
func (o *pendingReleases) forgetSettledLocked(b *pendingRelease) {
	if now := time.Now(); b.due == nil && b.acquireArrivesUntil.Before(now) && b.releaseArrivesUntil.Before(now) && o.byClaim[b.nodeClaim] == b {
		delete(o.byClaim, b.nodeClaim)
	}
}

// awaitClaimable waits until a claim with a token may be sent to a node. It cancels a
// pending release of the token there, and waits until no release that was sent can
// arrive.
func (o *pendingReleases) awaitClaimable(ctx context.Context, k nodeClaim) error {
	wait := time.Duration(0)
	o.mu.Lock()
	if b := o.byClaim[k]; b != nil {
		o.cancelLocked(b)
		wait = time.Until(b.releaseArrivesUntil)
	}
	o.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return backoff.Wait(ctx, wait)
}

// recordUnansweredAcquire records that an Acquire may arrive until end. So a release
// before end is not the last one.
func (o *pendingReleases) recordUnansweredAcquire(k nodeClaim, end time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.findOrAddLocked(k); b != nil {
		b.acquireArrivesUntil = later(b.acquireArrivesUntil, end.Add(driver.MaxLead))
	}
}

// recordRelease records the result of a release on a node that may arrive until end. It
// schedules further releases in the background, unless claimContinues.
func (o *pendingReleases) recordRelease(i int, l driver.LeaseRef, end time.Time, err error, claimContinues bool) {
	k, now, final := nodeClaim{i, l.Token, l.Name}, time.Now(), isFinal(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if final && o.byClaim[k] == nil {
		return
	}
	b := o.findOrAddLocked(k)
	if b == nil {
		return
	}
	if !final {
		b.releaseArrivesUntil = later(b.releaseArrivesUntil, end.Add(driver.MaxLead))
	}
	switch {
	case claimContinues:
	case final && !now.Before(b.acquireArrivesUntil):
		o.cancelLocked(b)
		o.forgetSettledLocked(b)
	default:
		o.scheduleLocked(b, l)
		o.nodes[i].AddSent(b.due, now, final)
	}
}

// release makes a release of a claim due on a node.
func (o *pendingReleases) release(i int, l driver.LeaseRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.findOrAddLocked(nodeClaim{i, l.Token, l.Name}); b != nil {
		o.scheduleLocked(b, l)
		o.nodes[i].Add(b.due)
	}
}

// scheduleLocked sets the release to send for a claim. It is sent until no Acquire can
// arrive any more, and for the TTL of the lease after that, at most.
func (o *pendingReleases) scheduleLocked(b *pendingRelease, l driver.LeaseRef) {
	o.cancelLocked(b)
	l.HasEnd = true
	b.due = &dueRelease{Claim: b, Lease: l, TTL: l.TTL, ReleaseAgainAt: b.acquireArrivesUntil, Until: later(time.Now(), b.acquireArrivesUntil).Add(l.TTL)}
}

func (o *pendingReleases) cancelLocked(b *pendingRelease) {
	if b.due != nil {
		o.nodes[b.node].Cancel(b.due)
		b.due = nil
	}
}

// send makes one attempt at a release, for the Returner of its node. It waits for the
// token's other requests to that node, but no longer than for an answer, because it has
// one of the Returner's places.
func (o *pendingReleases) send(_ context.Context, r *dueRelease, sent time.Time) (returner.Outcome, error) {
	b, d := r.Claim, o.d
	if d.beginOperation(d.requestsCtx) != nil {
		return returner.Unanswerable, nil
	}
	defer d.work.Done()
	v := poll(context.Background(), d, pollRequest[returner.Outcome]{
		nodes: []int{b.node}, token: b.token, timeout: min(3*time.Second, max(r.TTL/6, 10*time.Millisecond)),
		send: func(ctx context.Context, _ int) (returner.Outcome, error) { return o.sendInOrder(ctx, r, sent) },
	})[b.node]
	if v.err != nil {
		return returner.Failed, v.err
	}
	return v.value, nil
}

func (o *pendingReleases) sendInOrder(ctx context.Context, r *dueRelease, sent time.Time) (returner.Outcome, error) {
	b, end := r.Claim, driver.End(ctx)
	o.mu.Lock()
	cancelled, previous := b.due != r, b.releaseArrivesUntil
	if !cancelled {
		b.releaseArrivesUntil = later(previous, end.Add(driver.MaxLead))
	}
	o.mu.Unlock()
	if cancelled {
		return returner.Unanswerable, nil
	}
	err := o.d.nodes[b.node].Release(ctx, r.Lease)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !isFinal(err) {
		return returner.Failed, err
	}
	b.releaseArrivesUntil = previous
	switch {
	case sent.Before(b.acquireArrivesUntil):
		r.ReleaseAgainAt = b.acquireArrivesUntil
	case b.due == r:
		b.due = nil
		o.forgetSettledLocked(b)
	}
	return returner.Done, nil
}

func (o *pendingReleases) stop() {
	for _, n := range o.nodes {
		_, _ = n.Abandon()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
