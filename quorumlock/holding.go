package quorumlock

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A holding is the record of a lease that this driver returned or signaled: the claim, as
// the nodes have it, and the holder's fence.
type holding struct {
	claim          driver.Claim
	fence          uint64
	until          time.Time // when the lease ends at the latest, unless its holder renews it
	sureUntil      time.Time // until then the nodes whose votes were counted keep the lease
	lackingNodes   []int     // the nodes that answered that they lack the lease; it may still wait in their queue
	confirmedNodes []int     // the nodes that are known to have the lease with this fence, or a higher one
}

// reliableTTL returns the time for which the driver relies on votes with this TTL. It is
// shorter than the TTL, because clocks drift.
func reliableTTL(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// holdings are the leases that this driver returned or signaled, by token.
type holdings struct {
	mu      sync.Mutex // protects the fields below
	all     map[driver.Token]*holding
	purgeAt int // the number of holdings at which the expired ones are removed
}

// recordGrant adds a lease before the driver returns or signals it, with the nodes' votes
// for it. A majority keeps the lease until sureUntil.
func (hs *holdings) recordGrant(c driver.Claim, votes grantVotes, fence uint64, sureUntil time.Time) {
	now := time.Now()
	h := &holding{claim: c, fence: fence, until: now.Add(max(c.TTL, c.QueueTTL)), sureUntil: sureUntil}
	h.confirmedNodes = nodesOf(votes, func(v vote[driver.Grant]) bool { return v.err == nil && v.value.Fence >= fence })
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if _, known := hs.all[c.Token]; !known && len(hs.all) >= hs.purgeAt {
		maps.DeleteFunc(hs.all, func(_ driver.Token, h *holding) bool { return h.until.Before(now) })
		hs.purgeAt = 2*len(hs.all) + 64
	}
	hs.all[c.Token] = h
}

func (hs *holdings) find(token driver.Token, name string) (h holding, ok bool) {
	hs.update(token, name, func(x *holding) { h, ok = *x, true })
	return h, ok
}

// majorityKeeps reports whether a lease with this fence was granted, and a majority has
// kept it since.
func (hs *holdings) majorityKeeps(token driver.Token, name string, fence uint64) bool {
	h, ok := hs.find(token, name)
	return ok && h.fence == fence && time.Now().Before(h.sureUntil)
}

// remove removes a lease, and returns it.
func (hs *holdings) remove(token driver.Token, name string) (h holding) {
	hs.update(token, name, func(x *holding) {
		h = *x
		delete(hs.all, token)
	})
	return h
}

// update calls f for a lease, if there is a holding of it.
func (hs *holdings) update(token driver.Token, name string, f func(h *holding)) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.all[token]; h != nil && h.claim.Name == name {
		f(h)
	}
}

// clearSureUntil clears sureUntil, because the driver releases the lease on nodes of the
// majority.
func (hs *holdings) clearSureUntil(token driver.Token, name string) {
	hs.update(token, name, func(h *holding) { h.sureUntil = time.Time{} })
}

// recordAnswer records whether a node has a lease. It reports whether there is nothing to
// repair. A node that lacked the lease may have it with a lower fence now.
func (hs *holdings) recordAnswer(l driver.LeaseRef, node int, has bool) (complete bool) {
	complete = true // if there is no holding
	hs.update(l.Token, l.Name, func(h *holding) {
		if !has || slices.Contains(h.lackingNodes, node) {
			h.lackingNodes, h.confirmedNodes = without(h.lackingNodes, node), without(h.confirmedNodes, node)
		}
		if !has {
			h.lackingNodes = append(h.lackingNodes, node)
		}
		complete = slices.Contains(h.confirmedNodes, node)
	})
	return complete
}

// recordFence records the fence that a lease has on a node.
func (hs *holdings) recordFence(l driver.LeaseRef, node int, fence uint64) {
	hs.update(l.Token, l.Name, func(h *holding) {
		if fence >= h.fence {
			h.confirmedNodes = append(without(h.confirmedNodes, node), node)
		}
	})
}

// without returns a copy of nodes without one of them. It changes no array that find has
// returned.
func without(nodes []int, node int) []int {
	return slices.DeleteFunc(slices.Clone(nodes), func(i int) bool { return i == node })
}

// recordRenewal records a successful renewal, whose request was sent at the time sent.
func (hs *holdings) recordRenewal(l driver.LeaseRef, sent time.Time) {
	hs.update(l.Token, l.Name, func(h *holding) {
		h.claim.TTL, h.until = l.TTL, time.Now().Add(l.TTL)
		if l.Value != nil {
			h.claim.Value = l.Value
		}
		if sent.Before(h.sureUntil) { // after sureUntil, the lease may have lost its majority and got another one
			h.sureUntil = sent.Add(reliableTTL(l.TTL))
		}
	})
}
