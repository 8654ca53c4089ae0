package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// bugState is the state of a bug in a node.
type bugState struct {
	clock *clock

	mu     sync.Mutex // protects all below
	claims map[driver.Token]driver.Claim
	holder map[string]driver.Token // the last granted token that is not released
	last   map[string]uint64       // the fence of that grant
	swap   map[driver.Token]driver.Token
}

// recordGrant records a grant, and returns whether it is the first one of the token.
func (m *bugState) recordGrant(c driver.Claim, g driver.Grant) (first bool) {
	_, known := m.claims[c.Token]
	m.claims[c.Token], m.holder[c.Name] = c, c.Token
	return !known
}

// faults are common bugs of locks.
var faults = []bug{
	{"a release that does not check the owner of the lease", "hold the name at the same time", 8, "memory", inNode(func(b *patched, m *bugState) {
		b.grants(m, func(c driver.Claim, g *driver.Grant) { m.recordGrant(c, *g) })
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			err := b.server.Release(ctx, l)
			m.mu.Lock()
			defer m.mu.Unlock()
			if errors.Is(err, driver.ErrNoSuchLease) {
				_ = b.server.Release(ctx, driver.LeaseRef{Name: l.Name, Token: m.holder[l.Name]})
			}
			return err
		}
	}), nil},
	{"a renewal that makes a lease", "did not see its loss", 17, "memory", inNode(func(b *patched, m *bugState) {
		plantGrantingRenewal(b, m, func(driver.Token) bool { return true })
	}), nil},
	{"a renewal that comes after the release makes the lease again", "says that", 21, "memory", inNode(func(b *patched, m *bugState) {
		released := map[driver.Token]bool{}
		plantGrantingRenewal(b, m, func(t driver.Token) bool { return released[t] })
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			m.mu.Lock()
			released[l.Token] = true
			m.mu.Unlock()
			return b.server.Release(ctx, l)
		}
	}), nil},
	{"a renewal that succeeds and does nothing", "hold the name at the same time", 3, "memory", inNode(func(b *patched, _ *bugState) {
		b.renew = func(_ context.Context, leases []driver.LeaseRef) ([]error, error) {
			return make([]error, len(leases)), nil
		}
	}), nil},
	{"a term that is counted from the reply", "hold the name at the same time", 3, "memory", inClient(func(_ *process, b *patched) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			sent := time.Now()
			g, err := b.server.Acquire(ctx, c)
			g.TTL += time.Since(sent)
			return g, err
		}
		b.renewals(func(l *driver.LeaseRef) { l.TTL -= l.TTL / 6 }) // a reply may take that long
	}), nil},
	{"fences begin again when a lease expires", "the fence of", 4, "memory", inNode(func(b *patched, m *bugState) {
		b.grants(m, func(c driver.Claim, g *driver.Grant) {
			_, held := m.holder[c.Name]
			if m.recordGrant(c, *g) && held {
				g.Fence = 1
			}
		})
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			m.mu.Lock()
			delete(m.holder, l.Name)
			m.mu.Unlock()
			return b.server.Release(ctx, l)
		}
	}), nil},
	{"the same fence for the next", "have the same fence", 1, "memory", inNode(func(b *patched, m *bugState) {
		b.grants(m, func(c driver.Claim, g *driver.Grant) {
			if m.recordGrant(c, *g) {
				g.Fence = cmp.Or(m.last[c.Name], g.Fence)
				m.last[c.Name] = g.Fence
			}
		})
	}), nil},
	{"a lease that ends with the ctx of its acquire", "nothing had gone wrong", 22, "memory", inClient(func(_ *process, b *patched) {
		var mu sync.Mutex
		ends := map[driver.Token]time.Time{}
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			mu.Lock()
			ends[c.Token] = driver.End(ctx)
			mu.Unlock()
			return b.server.Acquire(ctx, c)
		}
		b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
			mu.Lock()
			over := slices.ContainsFunc(leases, func(l driver.LeaseRef) bool { return time.Now().After(ends[l.Token]) })
			mu.Unlock()
			if over {
				return nil, context.DeadlineExceeded
			}
			return b.server.Renew(ctx, leases)
		}
	}), nil},
	{"a majority that is one too few", "hold the name at the same time", 3, "quorum", func() planted {
		return planted{quorum: func(p *process, nodes []driver.Driver) []driver.Driver { // one too few
			same := p.number % len(nodes)
			nodes[(same+1)%len(nodes)] = newLink(p, p.w.nodes[same].(*node))
			return nodes
		}}
	}, nil},
	{"a wake-up that is lost", "while the name was free", 22, "memory", signals(func(k driver.SignalKind) bool { return k != driver.SignalGranted }), nil},
	{"names that are folded", "no call can have held the name", 42, "memory", inNode(func(b *patched, _ *bugState) {
		b.claims(func(c *driver.Claim) { c.Name = strings.ToLower(c.Name) })
		b.renewals(func(l *driver.LeaseRef) { l.Name = strings.ToLower(l.Name) })
		b.releases(func(l *driver.LeaseRef) { l.Name = strings.ToLower(l.Name) })
	}), nil},
	{"one permit too many", "hold the name at the same time", 1, "memory", claims(func(c *driver.Claim) {
		if c.Limit < driver.Unlimited {
			c.Limit++
		}
	}), nil},
	{"a waiter passes the one before it", "FIFO", 6, "memory", inNode(func(b *patched, m *bugState) { plantSwappedWaiters(b, m) }), nil},
	{"a waiter that gave up stays in the queue", "waits for it", 2651, "memory", inNode(func(b *patched, m *bugState) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := b.server.Acquire(ctx, c)
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.claims[c.Token] = c; err == nil {
				delete(m.claims, c.Token)
			}
			return g, err
		}
		b.release = func(ctx context.Context, l driver.LeaseRef) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if _, waits := m.claims[l.Token]; waits {
				return nil
			}
			return b.server.Release(ctx, l)
		}
	}), nil},
	{"a forced claim that breaks no holder", "returned nil, but", 11, "memory", inNode(func(b *patched, _ *bugState) {
		beside := map[driver.Token]bool{}
		b.claims(func(c *driver.Claim) {
			if c.Force {
				c.Name += " beside"
				beside[c.Token] = true
			}
		})
		b.releases(func(l *driver.LeaseRef) {
			if beside[l.Token] {
				l.Name += " beside"
			}
		})
	}), nil},
	{"a backend's clock that is twice as fast", "hold the name at the same time", 7, "memory", func() planted {
		return planted{node: func(n *node, s server) server { n.clock.ppm = 1_000_000; return s }}
	}, nil},
	{"a refusal that asks for a retry at once", "requests to acquire", 4, "memory", inNode(func(b *patched, _ *bugState) {
		b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := b.server.Acquire(ctx, c)
			if held, ok := errors.AsType[*driver.HeldError](err); ok {
				held.RetryAfter = 1
			}
			return g, err
		}
	}), nil},
	{"a lease whose end is reported twice", "the Observer of", 2, "memory", func() planted {
		return planted{observe: func(o *pawl.Observer) {
			lost := o.Lost
			o.Lost = func(e pawl.LostEvent) { lost(e); lost(e) }
		}}
	}, nil},
}

// plantGrantingRenewal plants a renewal that grants a lease which it does not find.
func plantGrantingRenewal(b *patched, m *bugState, which func(driver.Token) bool) {
	b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		m.mu.Lock()
		m.claims[c.Token] = c
		m.mu.Unlock()
		return b.server.Acquire(ctx, c)
	}
	b.renew = func(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
		answers, err := b.server.Renew(ctx, leases)
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, l := range leases {
			if err == nil && errors.Is(answers[i], driver.ErrNoSuchLease) && which(l.Token) {
				c := m.claims[l.Token]
				c.Queue = false
				_, answers[i] = b.server.Acquire(ctx, c)
			}
		}
		return answers, err
	}
}

// plantSwappedWaiters exchanges the tokens of the first two claims of the queue.
func plantSwappedWaiters(b *patched, m *bugState) {
	as := func(t driver.Token) driver.Token {
		m.mu.Lock()
		defer m.mu.Unlock()
		if other, ok := m.swap[t]; ok {
			return other
		}
		return t
	}
	b.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		m.mu.Lock()
		first, waits := m.holder[c.Name]
		_, swapped := m.swap[c.Token]
		if waits && first != c.Token && !swapped && m.swap[first] == (driver.Token{}) && c.Queue {
			m.swap[first], m.swap[c.Token] = c.Token, first
		}
		m.mu.Unlock()
		own := c.Token
		c.Token = as(c.Token)
		g, err := b.server.Acquire(ctx, c)
		m.mu.Lock()
		defer m.mu.Unlock()
		if errors.Is(err, driver.ErrHeld) && c.Queue {
			m.holder[c.Name] = own // here: the waiting token
		}
		return g, err
	}
	b.renewals(func(l *driver.LeaseRef) { l.Token = as(l.Token) })
	b.releases(func(l *driver.LeaseRef) { l.Token = as(l.Token) })
	b.listen = func(f func(driver.Signal)) func(driver.Signal) {
		return func(s driver.Signal) { s.Token = as(s.Token); f(s) }
	}
}
