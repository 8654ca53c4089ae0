package quorumlock

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A holding is the driver's record of a lease that was granted through it: the claim, as
// the nodes have it, and the holder's fence.
type holding struct {
	claim     driver.Claim
	fence     uint64
	until     time.Time // when the lease ends, unless its holder renews it
	sureUntil time.Time // until then the counted nodes keep the lease
	lacks     []int     // the nodes that answered that they lack the lease; they have at most a place for it
}

// trustedPart returns the time for which to rely on votes with this TTL. It is shorter
// than the TTL, because two clocks never run at the same speed.
func trustedPart(ttl time.Duration) time.Duration { return ttl - ttl/10 }

// holdings are the leases that were granted through us, by token.
type holdings struct {
	mu    sync.Mutex // protects what follows
	all   map[driver.Token]holding
	purge int // how many holdings there may be before the expired ones are removed
}

// noteGrant notes a lease that is about to be returned, and until when a majority surely
// keeps it.
func (hs *holdings) noteGrant(c driver.Claim, fence uint64, sure time.Time) {
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
	hs.all[c.Token] = holding{claim: c, fence: fence, until: now.Add(max(c.TTL, c.QueueTTL)), sureUntil: sure}
}

// find returns what is known of a lease.
func (hs *holdings) find(token driver.Token, name string) (holding, bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h, ok := hs.all[token]
	return h, ok && h.claim.Name == name
}

// counted reports whether a lease with this fence was granted, and a majority has kept it
// since.
func (hs *holdings) counted(token driver.Token, name string, fence uint64) bool {
	h, ok := hs.find(token, name)
	return ok && h.fence == fence && time.Now().Before(h.sureUntil)
}

// noteUnsure notes that counted nodes give the lease back.
func (hs *holdings) noteUnsure(token driver.Token, name string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h, ok := hs.all[token]; ok && h.claim.Name == name {
		h.sureUntil = time.Time{}
		hs.all[token] = h
	}
}

// noteAnswer notes the answer of a node that has, or lacks, a lease.
func (hs *holdings) noteAnswer(l driver.LeaseRef, node int, has bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h, ok := hs.all[l.Token]
	if !ok || h.claim.Name != l.Name || slices.Contains(h.lacks, node) != has {
		return
	}
	h.lacks = slices.DeleteFunc(slices.Clone(h.lacks), func(i int) bool { return i == node }) // find returned the old
	if !has {
		h.lacks = append(h.lacks, node)
	}
	hs.all[l.Token] = h
}

// noteRenewal notes that a renewal has extended a lease, and when it was sent.
func (hs *holdings) noteRenewal(l driver.LeaseRef, sent time.Time) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h, ok := hs.all[l.Token]; ok && h.claim.Name == l.Name {
		h.claim.TTL, h.until = l.TTL, time.Now().Add(l.TTL)
		if l.Value != nil {
			h.claim.Value = l.Value
		}
		if sent.Before(h.sureUntil) { // otherwise the lease may have lost its majority, and found another one
			h.sureUntil = sent.Add(trustedPart(l.TTL))
		}
		hs.all[l.Token] = h
	}
}

// forget forgets a lease that has ended.
func (hs *holdings) forget(token driver.Token, name string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all[token].claim.Name == name {
		delete(hs.all, token)
	}
}
