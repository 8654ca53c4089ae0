package redisscript

import (
	"slices"
	"sync"

	"github.com/pawl-go/pawl/driver"
)

// leases are the tokens that this driver claims, by name: when client tracking says that a name was changed by
// somebody else, its holders look. A nil *leases tracks nothing.
type leases struct {
	mu     sync.Mutex // protects the map
	byName map[string][]driver.Token
}

// add comes before the claim is sent: the name may change before the answer is here.
func (l *leases) add(name string, t driver.Token) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.byName[name]; !slices.Contains(all, t) {
		l.byName[name] = append(all, t)
	}
}

func (l *leases) remove(name string, t driver.Token) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.byName[name]
	if i := slices.Index(all, t); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	if len(all) == 0 {
		delete(l.byName, name)
	} else {
		l.byName[name] = all
	}
}

func (l *leases) of(name string) []driver.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.byName[name])
}

// Invalidated tells the driver that somebody else changed what stands at these keys; no keys means that this may be
// so for all of them. It does not block.
func (d *Driver) Invalidated(keys []string) {
	if d.held == nil || d.closed.Load() {
		return
	}
	if keys == nil {
		d.inbox.deliver(driver.Signal{Kind: driver.Look})
		return
	}
	for _, key := range keys {
		if name, ok := nameOf(d.Prefix, key); ok {
			for _, t := range d.held.of(name) {
				d.inbox.deliver(driver.Signal{Kind: driver.Lost, Token: t}) // perhaps: it is for the holder to check
			}
		}
	}
}
