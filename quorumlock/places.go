package quorumlock

import (
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// places are the claims that wait, by token.
type places struct {
	mu    sync.Mutex // protects what follows
	all   map[driver.Token]*place
	purge int // the number of places at which stale places are removed
}

// join finds the place of a claim, or makes one. It does not keep the place of a try.
func (ps *places) join(d *quorum, c driver.Claim) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[c.Token]
	if p == nil || p.name != c.Name { // a token may claim several names, but signals wake only one of the claims
		p = newPlace(d, c)
		if c.Queue && ps.all[c.Token] == nil {
			ps.tidyLocked()
			ps.all[c.Token] = p
		}
	}
	return p
}

// tidyLocked forgets the places of claims whose last attempt is so old that no node knows
// them any more.
func (ps *places) tidyLocked() {
	if len(ps.all) < ps.purge {
		return
	}
	for token, p := range ps.all {
		if p.closeIfStale() {
			delete(ps.all, token)
		}
	}
	ps.purge = 2*len(ps.all) + 64
}

// leave forgets a place, because its claim was granted, or given up.
func (ps *places) leave(token driver.Token, name string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.all[token]; p != nil && p.name == name {
		delete(ps.all, token)
		p.close()
	}
}

func (ps *places) find(token driver.Token) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.all[token]
}

// stop ends all timers.
func (ps *places) stop() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.close()
	}
	clear(ps.all)
}
