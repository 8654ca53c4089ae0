package quorumlock

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A holding is what we know of a lease that was granted through us: its claim, as the
// nodes know it, and the fence that was shown.
type holding struct {
	claim driver.Claim
	fence uint64
	until time.Time // when it is over, if nobody renews it
	sure  time.Time // so long those nodes keep it that were counted
	lacks []int     // the nodes that said so; at the most they have a place for it
}

// surely is for how long votes are counted on that last so long: two clocks never run at
// the same speed.
func surely(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// holdings are the leases that were granted through us, by token.
type holdings struct {
	mu    sync.Mutex // protects what follows
	all   map[driver.Token]holding
	purge int // how many there may be before those that are over are looked for
}

// granted notes a lease that is about to be shown, and until when a majority keeps it for
// sure.
func (hs *holdings) granted(c driver.Claim, fence uint64, sure time.Time) {
	now := time.Now()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if _, known := hs.all[c.Token]; !known && len(hs.all) >= hs.purge {
		for token, h := range hs.all {
			if h.until.Before(now) {
				delete(hs.all, token)
			}
		}
		hs.purge = 2*len(hs.all) + 64
	}
	hs.all[c.Token] = holding{claim: c, fence: fence, until: now.Add(max(c.TTL, c.QueueTTL)), sure: sure}
}

// find returns what is known of a lease.
func (hs *holdings) find(token driver.Token, name string) (holding, bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h, ok := hs.all[token]
	return h, ok && h.claim.Name == name
}

// counted reports whether a lease with this fence was shown, and a majority has kept it
// since.
func (hs *holdings) counted(token driver.Token, name string, fence uint64) bool {
	h, ok := hs.find(token, name)
	return ok && h.fence == fence && time.Now().Before(h.sure)
}

// unsure notes that nodes which were counted give the lease back.
func (hs *holdings) unsure(token driver.Token, name string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h, ok := hs.all[token]; ok && h.claim.Name == name {
		h.sure = time.Time{}
		hs.all[token] = h
	}
}

// answered notes that a node has said whether it has a lease.
func (hs *holdings) answered(l driver.LeaseRef, node int, has bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h, ok := hs.all[l.Token]
	if !ok || h.claim.Name != l.Name || slices.Contains(h.lacks, node) != has {
		return
	}
	h.lacks = slices.DeleteFunc(slices.Clone(h.lacks), func(i int) bool { return i == node }) // find shows the old ones
	if !has {
		h.lacks = append(h.lacks, node)
	}
	hs.all[l.Token] = h
}

// renewed notes that a lease goes on, by a renewal that was sent then.
func (hs *holdings) renewed(l driver.LeaseRef, sent time.Time) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h, ok := hs.all[l.Token]; ok && h.claim.Name == l.Name {
		h.claim.TTL, h.until = l.TTL, time.Now().Add(l.TTL)
		if l.Value != nil {
			h.claim.Value = l.Value
		}
		if sent.Before(h.sure) { // else it may have lost its majority, and have found another
			h.sure = sent.Add(surely(l.TTL))
		}
		hs.all[l.Token] = h
	}
}

// over forgets a lease that has ended.
func (hs *holdings) over(token driver.Token, name string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all[token].claim.Name == name {
		delete(hs.all, token)
	}
}
