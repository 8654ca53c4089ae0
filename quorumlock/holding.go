package quorumlock

import (
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A holding is what we know of a lease that was granted through us: its claim, as the nodes
// know it, and the fence that was shown.
type holding struct {
	claim driver.Claim
	fence uint64
	until time.Time // when it is over, if nobody renews it
}

// holdings are the leases that were granted through us, by token.
type holdings struct {
	mu    sync.Mutex // protects what follows
	all   map[driver.Token]holding
	purge int // how many there may be before those that are over are looked for
}

// granted notes a lease that is about to be shown.
func (hs *holdings) granted(c driver.Claim, fence uint64) {
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
	hs.all[c.Token] = holding{claim: c, fence: fence, until: now.Add(max(c.TTL, c.WaitTTL))}
}

// find returns what is known of a lease.
func (hs *holdings) find(token driver.Token, name string) (holding, bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h, ok := hs.all[token]
	return h, ok && h.claim.Name == name
}

// renewed notes that a lease goes on.
func (hs *holdings) renewed(l driver.Lease) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h, ok := hs.all[l.Token]; ok && h.claim.Name == l.Name {
		h.claim.TTL, h.until = l.TTL, time.Now().Add(l.TTL)
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
