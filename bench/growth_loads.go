package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// loads returns the loads, one for each thing of which there can be many.
func loads() []load {
	return []load{namesLoad(), holdersLoad(), waitersLoad(), watchersLoad(), clientsLoad()}
}

func heldName(i int) string { return fmt.Sprintf("held%06d", i) }

// middleIndex returns the index of the middle one of the load's claims.
func (g *loadedServer) middleIndex() int { return g.size / 2 }

// addClaims makes claims, 64 at a time, until the load has n.
func (g *loadedServer) addClaims(n int, claim func(i int) (driver.Token, error)) error {
	have := len(g.tokens)
	g.tokens = append(g.tokens, make([]driver.Token, n-have)...)
	return in64Goroutines(n-have, func(i int) (err error) {
		g.tokens[have+i], err = claim(have + i)
		return err
	})
}

// addClaimsInOrder is addClaims, but makes one claim after the other.
func (g *loadedServer) addClaimsInOrder(n int, claim func(i int) (driver.Token, error)) error {
	for i := len(g.tokens); i < n; i++ {
		t, err := claim(i)
		if err != nil {
			return err
		}
		g.tokens = append(g.tokens, t)
	}
	return nil
}

func namesLoad() load {
	middleName := func(g *loadedServer) string { return heldName(g.middleIndex()) }
	return load{
		name: "names", description: "names are held, each by one lease of one client",
		fill: func(g *loadedServer, n int) error {
			return g.addClaims(n, func(i int) (driver.Token, error) {
				c := exclusive(heldName(i))
				_, err := acquire(g.driver, c) // not g.loader, so that the load is also the leases of one client
				return c.Token, err
			})
		},
		steps: []step{
			{name: "grant and release of a free name", do: func(_ *loadedServer, d driver.Driver, _ int) error { return acquireAndRelease(d, exclusive("free")) }},
			{name: "grant and release of a new name", do: func(g *loadedServer, d driver.Driver, i int) error {
				return acquireAndRelease(d, exclusive(fmt.Sprintf("new-%d-%p-%d", g.size, d, i)))
			}},
			{name: "refused try", do: func(g *loadedServer, d driver.Driver, _ int) error { return expectHeld(d, exclusive(middleName(g))) }},
			{name: "first place in a queue, given up", do: func(g *loadedServer, d driver.Driver, _ int) error { return queueAndLeave(d, queued(middleName(g))) }},
			{name: "renewal of one lease", do: func(g *loadedServer, d driver.Driver, _ int) error {
				return renewLease(d, withToken(exclusive(middleName(g)), g.tokens[g.middleIndex()]))
			}},
			{name: "grant and break", do: func(_ *loadedServer, d driver.Driver, _ int) error { return acquireAndBreak(d, exclusive("free")) }},
			{name: "Inspect", do: func(g *loadedServer, d driver.Driver, _ int) error { return inspect(d, middleName(g)) }},
			{name: "one page of List, 100 names", do: func(_ *loadedServer, d driver.Driver, _ int) error { return listPage(d) }},
		},
	}
}

func holdersLoad() load {
	const name = "one"
	return load{
		name: "holders", description: "readers hold one name",
		fill: func(g *loadedServer, n int) error {
			return g.addClaims(n, func(int) (driver.Token, error) {
				c := reading(name)
				_, err := acquire(g.loader, c)
				return c.Token, err
			})
		},
		steps: []step{
			{name: "a reader comes and goes", do: func(_ *loadedServer, d driver.Driver, _ int) error { return acquireAndRelease(d, reading(name)) }},
			{name: "refused try", do: func(_ *loadedServer, d driver.Driver, _ int) error { return expectHeld(d, exclusive(name)) }},
			{name: "first place in the queue, given up", do: func(_ *loadedServer, d driver.Driver, _ int) error { return queueAndLeave(d, queued(name)) }},
			{name: "renewal of one lease", do: func(g *loadedServer, d driver.Driver, _ int) error {
				return renewLease(d, withToken(reading(name), g.tokens[g.middleIndex()]))
			}},
			{name: "grant and break", do: func(_ *loadedServer, d driver.Driver, _ int) error { return acquireAndBreak(d, reading(name)) }},
			{name: "Inspect", do: func(_ *loadedServer, d driver.Driver, _ int) error { return inspect(d, name) }},
			{name: "one page of List, 1 name", do: func(_ *loadedServer, d driver.Driver, _ int) error { return listPage(d) }},
		},
	}
}

// waitersLoad has one holder of a name, and waiters behind that holder.
func waitersLoad() load {
	const name = "one"
	join := func(d driver.Driver) (driver.Token, error) {
		c := queued(name)
		return c.Token, expectHeld(d, c)
	}
	return load{
		name: "waiters", description: "claims wait for one name, which is held",
		fill: func(g *loadedServer, n int) error {
			if len(g.tokens) == 0 {
				c := exclusive(name)
				if _, err := acquire(g.loader, c); err != nil {
					return err
				}
				g.tokens = []driver.Token{c.Token}
			}
			g.tokens = slices.DeleteFunc(g.tokens, driver.Token.IsZero)
			return g.addClaimsInOrder(n+1, func(int) (driver.Token, error) { return join(g.loader) })
		},
		steps: []step{
			{name: "refused try", do: func(_ *loadedServer, d driver.Driver, _ int) error { return expectHeld(d, exclusive(name)) }},
			{name: "last place in the queue, given up", do: func(_ *loadedServer, d driver.Driver, _ int) error { return queueAndLeave(d, queued(name)) }},
			{name: "a place in the middle is kept", do: func(g *loadedServer, d driver.Driver, _ int) error {
				return expectHeld(d, withToken(queued(name), g.tokens[g.middleWaiter()]))
			}},
			{name: "the holder's renewal", do: func(g *loadedServer, d driver.Driver, _ int) error {
				return renewLease(d, withToken(exclusive(name), g.tokens[0]))
			}},
			{name: "release that passes on, and a new waiter", do: func(g *loadedServer, d driver.Driver, _ int) error {
				if err := release(d, withToken(exclusive(name), g.tokens[0])); err != nil {
					return err
				}
				token, err := join(d)
				g.recordHandOver(token)
				return err
			}},
			{name: "a waiter in the middle goes, and a new one comes", do: func(g *loadedServer, d driver.Driver, _ int) error {
				at := g.middleWaiter()
				if err := release(d, withToken(queued(name), g.tokens[at])); err != nil {
					return err
				}
				token, err := join(d)
				g.tokens[at] = driver.Token{}
				g.tokens = append(g.tokens, token)
				return err
			}},
			{
				name: "break, the end of its delay, and a new waiter", sleepTime: afterBreakPause,
				do: func(g *loadedServer, d driver.Driver, _ int) error {
					held := withToken(exclusive(name), g.tokens[0])
					grant, err := acquireWhenOpen(d, held) // the first waiter got the name when the last delay ended
					if err != nil {
						return err
					}
					if err := breakLease(d, held, grant.Fence, breakDelay); err != nil {
						return err
					}
					time.Sleep(afterBreakPause)
					token, err := join(d) // this step finds that the delay is over
					g.recordHandOver(token)
					return err
				},
			},
			{name: "Inspect", do: func(_ *loadedServer, d driver.Driver, _ int) error { return inspect(d, name) }},
		},
	}
}

// middleWaiter returns the index in g.tokens of a waiter in the middle of the queue. The
// first token is the holder's, and the others are in the order of the queue. The token of
// a waiter that has left is zero.
func (g *loadedServer) middleWaiter() int {
	at := len(g.tokens) / 2
	for at == 0 || g.tokens[at].IsZero() {
		at = (at + 1) % len(g.tokens)
	}
	return at
}

// recordHandOver records that the first waiter now holds the name, and that last waits.
func (g *loadedServer) recordHandOver(last driver.Token) {
	g.tokens = append(g.tokens[1:], last)
	for g.tokens[0].IsZero() {
		g.tokens = g.tokens[1:]
	}
}

// A backend whose clock has a window keeps a name closed a little longer than breakDelay.
const (
	breakDelay      = 10 * time.Millisecond
	afterBreakPause = 100 * time.Millisecond
)

// watchersLoad has watches of different names, and changes one of these names.
func watchersLoad() load {
	change := func(g *loadedServer, d driver.Driver, _ int) error {
		if !g.driver.Properties().PushesChanges {
			return errNotPushed
		}
		g.drainChanges()
		c := exclusive(heldName(g.middleIndex()))
		if _, err := acquire(d, c); err != nil {
			return err
		}
		return errors.Join(g.waitChange(), release(d, c))
	}
	return load{
		name: "watchers", description: "names are watched by one client", maxSize: 10_000,
		fill: func(g *loadedServer, n int) error {
			for i := g.size; i < n; i++ {
				if err := g.watch(g.driver, heldName(i)); err != nil {
					return err
				}
			}
			// A watch also reports the begin of its subscription.
			time.Sleep(time.Second)
			g.drainChanges()
			return nil
		},
		steps: []step{
			{name: "grant and release of a name without a watch", do: func(_ *loadedServer, d driver.Driver, _ int) error { return acquireAndRelease(d, exclusive("free")) }},
			{name: "a watch tells of a grant and of the release", do: change, sleepTime: drainTime},
		},
	}
}

// clientsLoad has clients with their own connections, each of which holds a name.
func clientsLoad() load {
	return load{
		name: "clients", description: "clients have connections, and hold a name each", maxSize: 100,
		fill: func(g *loadedServer, n int) error {
			var mu sync.Mutex
			have := len(g.clients)
			return in64Goroutines(n-have, func(i int) error {
				d, err := driver.Open(context.Background(), g.url(g.server.address()))
				if err != nil {
					return err
				}
				mu.Lock()
				g.clients = append(g.clients, d)
				mu.Unlock()
				_, err = acquire(d, exclusive(heldName(have+i)))
				return err
			})
		},
		steps: []step{
			{name: "grant and release of a free name", do: func(_ *loadedServer, d driver.Driver, _ int) error { return acquireAndRelease(d, exclusive("free")) }},
			{name: "refused try", do: func(g *loadedServer, d driver.Driver, _ int) error { return expectHeld(d, exclusive(heldName(0))) }},
		},
	}
}
