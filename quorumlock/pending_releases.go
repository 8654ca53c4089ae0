package quorumlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// pendingReleases are the releases of unwanted claims that a node may have granted, or
// may still grant. The driver sends each until the node has answered it. After an Acquire
// without an answer, it sends the release once more when that Acquire has ended.
//
// A client may claim with the same token again while a release is pending, or under way,
// for example to take back a place that it gave up. So each release has an end, too, and
// the new claim waits for that end. A sequence is not enough, because it orders requests
// by their answers, not by their arrival.
//
// There is one list for the driver, not a goroutine for each release. A node that fails
// gets one release at a time, less and less often.
type pendingReleases struct {
	d     *quorum
	count atomic.Int64 // the length of byClaim, readable without the mutex

	mu      sync.Mutex // protects what follows
	byClaim map[nodeClaim]*pendingRelease
	nodes   []nodeReleases
	purge   int // the length of byClaim at which settled releases are removed
	purged  time.Time
}

// nodeClaim identifies a claim on a node.
type nodeClaim struct {
	node  int
	token driver.Token
	name  string
}

// A pendingRelease is a claim on a node that has not answered a request of the claim.
type pendingRelease struct {
	nodeClaim
	acquireArrivesUntil time.Time // an Acquire without an answer may arrive until then
	releaseArrivesUntil time.Time // a Release may arrive until then

	lease       driver.LeaseRef // the argument of Release
	ttl         time.Duration
	mustSend    bool      // the claim has to be released
	usefulUntil time.Time // a release is of no use after that
	sendAt      time.Time // when to send the release
	tries       int
	index       int           // in the heap of its node, from 1; 0 if it is not in the heap
	inFlight    chan struct{} // not nil while the release is under way; closed at its end
	dueAgain    bool          // a release became due while one was under way, perhaps for a later Acquire
}

const maxPendingReleases = 1 << 16 // beyond that, leases on nodes are left to expire

func newPendingReleases(d *quorum) *pendingReleases {
	return &pendingReleases{d: d, byClaim: map[nodeClaim]*pendingRelease{}, nodes: make([]nodeReleases, len(d.nodes))}
}

// findOrAddLocked finds or adds a pending release. It returns nil if there are too many.
func (o *pendingReleases) findOrAddLocked(k nodeClaim) *pendingRelease {
	b := o.byClaim[k]
	if b != nil {
		return b
	}
	if now := time.Now(); len(o.byClaim) >= o.purge || len(o.byClaim) >= maxPendingReleases && now.Sub(o.purged) > time.Second {
		for _, b := range o.byClaim {
			if b.usefulUntil.Before(now) && b.index > 0 {
				o.dequeueLocked(b)
			}
			o.forgetSettledLocked(b)
		}
		o.purge, o.purged = 2*len(o.byClaim)+64, now
	}
	if len(o.byClaim) >= maxPendingReleases {
		return nil
	}
	b = &pendingRelease{nodeClaim: k}
	o.byClaim[k] = b
	o.count.Add(1)
	return b
}

// forgetSettledLocked forgets a release if nothing is to be sent, and nothing can arrive.
func (o *pendingReleases) forgetSettledLocked(b *pendingRelease) {
	if now := time.Now(); !b.mustSend && b.inFlight == nil && b.acquireArrivesUntil.Before(now) && b.releaseArrivesUntil.Before(now) && o.byClaim[b.nodeClaim] == b {
		delete(o.byClaim, b.nodeClaim)
		o.count.Add(-1)
	}
}

// awaitClaimable waits until a token may be claimed on a node. It cancels a pending
// release of the token there, and waits until no release that was sent can arrive.
func (o *pendingReleases) awaitClaimable(ctx context.Context, k nodeClaim) error {
	for o.count.Load() > 0 {
		o.mu.Lock()
		b := o.byClaim[k]
		if b == nil {
			o.mu.Unlock()
			return nil
		}
		o.dequeueLocked(b)
		told, bar := b.inFlight, time.Until(b.releaseArrivesUntil)
		o.mu.Unlock()
		switch {
		case told != nil:
			select {
			case <-told:
			case <-ctx.Done():
				return ctx.Err()
			}
		case bar > 0:
			if err := backoff.Wait(ctx, bar); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// noteUnansweredAcquire notes that an Acquire may arrive until end. So a release before
// end is not the last one.
func (o *pendingReleases) noteUnansweredAcquire(k nodeClaim, end time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.findOrAddLocked(k); b != nil {
		b.acquireArrivesUntil = later(b.acquireArrivesUntil, end.Add(driver.MaxLead))
	}
}

// noteRelease notes the result of a release that may arrive until end. It plans any
// further releases in the background, unless the claim goes on.
func (o *pendingReleases) noteRelease(k nodeClaim, l driver.LeaseRef, ttl time.Duration, end time.Time, err error, goesOn bool) {
	if isFinal(err) && o.count.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.byClaim[k]
	if b == nil && !isFinal(err) {
		b = o.findOrAddLocked(k)
	}
	if b == nil {
		return
	}
	if !isFinal(err) {
		b.releaseArrivesUntil = later(b.releaseArrivesUntil, end.Add(driver.MaxLead))
	}
	if !goesOn {
		o.requireLocked(b, l, ttl)
		o.planNextLocked(b, err)
		o.sendDueLocked(k.node)
	}
}

// release makes a release of a claim due on a node.
func (o *pendingReleases) release(k nodeClaim, l driver.LeaseRef, ttl time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.findOrAddLocked(k); b != nil {
		o.requireLocked(b, l, ttl)
		b.sendAt = time.Now()
		o.enqueueLocked(b)
		o.sendDueLocked(k.node)
	}
}

// requireLocked notes that a claim must be released, with which arguments, until when.
func (o *pendingReleases) requireLocked(b *pendingRelease, l driver.LeaseRef, ttl time.Duration) {
	l.OnTime = true
	b.mustSend, b.lease, b.ttl, b.tries = true, l, ttl, 0
	b.usefulUntil = later(time.Now(), b.acquireArrivesUntil).Add(ttl)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
