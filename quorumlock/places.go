package quorumlock

import (
	"maps"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// places are the waiting claims, by token.
type places struct {
	mu      sync.Mutex // protects the fields below
	all     map[driver.Token]*place
	purgeAt int // the number of places at which stale places are removed
}

// join finds or makes the place of a claim. It does not store the place of a try.
func (ps *places) join(d *quorum, c driver.Claim) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[c.Token]
	if p == nil || p.name != c.Name { // a token may claim several names, but signals wake only one of the claims
		p = newPlace(d, c)
		if c.Queue && ps.all[c.Token] == nil {
			if len(ps.all) >= ps.purgeAt {
				maps.DeleteFunc(ps.all, func(_ driver.Token, p *place) bool { return p.closeIfStale() })
				ps.purgeAt = 2*len(ps.all) + 64
			}
			ps.all[c.Token] = p
		}
	}
	return p
}

// leave removes a place, because its claim was granted or given up.
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

func (ps *places) stop() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.close()
	}
	clear(ps.all)
}
