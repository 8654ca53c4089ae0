package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// reviewBugs are bugs that a review found in Pawl: a node or a driver has the bug again,
// or makes the product behave as if it had it.
var reviewBugs = []bug{
	{"requests have no end", "says that", 124, "memory", func() planted { return planted{noEnds: true} }, nil},
	{"a claim with an unknown result is released only once", "says that", 51, "memory", inClient(func(_ *process, b *patched) {
		var mu sync.Mutex
		done := map[driver.Token]bool{}
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			mu.Lock()
			again := done[l.Token]
			mu.Unlock()
			if again {
				return driver.ErrNoSuchLease
			}
			err := b.server.Release(ctx, l)
			mu.Lock()
			defer mu.Unlock()
			done[l.Token] = err == nil || errors.Is(err, driver.ErrNoSuchLease)
			return err
		}
	}), givesUp},
	{"a forced claim that was reported as failed breaks a holder later", "no call can have broken it then", 60, "memory", claims(func(c *driver.Claim) {
		if c.Force {
			time.Sleep(c.TTL)
		}
	}), nil},
	{"an answer after the end of its ctx is a grant", "though its ctx was over", 1, "memory", inClient(func(_ *process, b *patched) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.TTL/3)
			defer cancel()
			return b.server.Acquire(ctx, c)
		}
	}), nil},
	{"a release that finds no lease succeeds", "returned nil, but", 743, "memory", inNode(func(b *patched, _ *bugState) {
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			if err := b.server.Release(ctx, l); !errors.Is(err, driver.ErrNoSuchLease) {
				return err
			}
			return nil
		}
	}), nil},
	{"a lease that ends without an acquired event", "the Observer of", 1, "memory", func() planted {
		return planted{observe: func(o *pawl.Observer) {
			acquired, n := o.Acquired, 0
			o.Acquired = func(e pawl.AcquiredEvent) {
				if n++; n%5 != 0 {
					acquired(e)
				}
			}
		}}
	}, nil},
	{"a lease that is released while the client closes stays held", "all clients are closed, but", 56, "memory", inClient(func(p *process, b *patched) {
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			if p.closed() {
				return nil
			}
			return b.server.Release(ctx, l)
		}
	}), nil},
	{"a hold that was taken by force is passed on", "the fence of", 5999, "memory", signals(func(k driver.SignalKind) bool { return k == driver.SignalGranted }), forcesSoon},
	{"one renewal that hangs delays all others", "nothing had gone wrong", 23, "memory", inClient(func(_ *process, b *patched) {
		lane, n := make(chan struct{}, 1), 0
		b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
			lane <- struct{}{} // no mutex: virtual time would stand still
			defer func() { <-lane }()
			if n++; n%3 == 0 {
				time.Sleep(2 * leases[0].TTL)
			}
			return b.server.Renew(ctx, leases)
		}
	}), nil},
	{"fences fall when a name is forgotten that was ahead of the clock", "the fence of", 53, "memory", inNode(func(b *patched, m *bugState) {
		b.grants(m, func(c driver.Claim, g *driver.Grant) {
			if now := uint64(m.clock.now().UnixMicro()); m.recordGrant(c, *g) && g.Fence > now+1 {
				g.Fence = now
			}
		})
	}), nil},
	{"an old signal counts after a node lost its data", "hold the name at the same time", 57, "quorum", inNode(func(b *patched, m *bugState) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := b.server.Acquire(ctx, c)
			m.mu.Lock()
			defer m.mu.Unlock()
			if _, known := m.claims[c.Token]; !known && errors.Is(err, driver.ErrHeld) && c.Queue {
				m.claims[c.Token] = c
				return driver.Grant{Fence: uint64(m.clock.now().UnixMicro()), Fences: 1, TTL: c.TTL}, nil
			}
			return g, err
		}
	}), nil},
}

// forcesSoon: leases are passed on for a long time, and one claim of three is forced.
func forcesSoon(p *plan) {
	for i := range p.processes {
		p.processes[i].handoff = 50 * time.Millisecond
		for j, steps := range p.processes[i].sessions {
			for k := range steps {
				s := &p.processes[i].sessions[j][k]
				s.after, s.hold, s.minHold, s.maxHold, s.ttl = s.after%(20*time.Millisecond), s.hold%(20*time.Millisecond), 0, 0, p.baseTTL
				if (i+j+k)%3 == 0 {
					s.verb, s.kind, s.weight, s.limit, s.usesDo = "force", "mutex", driver.Exclusive, driver.Unlimited, false
				}
			}
		}
	}
}

// givesUp: every second claim is cancelled at about the time at which its request is on
// the way, and nothing else goes wrong.
func givesUp(p *plan) {
	p.faults, p.weather = nil, wideArea(p.baseTTL)
	for _, w := range p.processes {
		for _, steps := range w.sessions {
			for k := range steps {
				steps[k].verb, steps[k].hold, steps[k].minHold = "try", 0, 0
				if k%2 == 0 {
					steps[k].cancel = time.Millisecond + steps[k].after%p.weather.high
				}
			}
		}
	}
}
