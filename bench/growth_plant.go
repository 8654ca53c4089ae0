package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

// plants are functions whose cost grows with the load, to show that the table detects
// growth. They run before Acquire.
var plants = map[string]func(p *plantedDriver, ctx context.Context, c driver.Claim){
	// The client iterates over all its leases.
	"client": func(p *plantedDriver, _ context.Context, _ driver.Claim) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for range 20 {
			for t := range p.held {
				p.seen += uint64(t[0])
			}
		}
	},
	// The server iterates over all names.
	"server": func(p *plantedDriver, ctx context.Context, _ driver.Claim) {
		if l, ok := driver.As[driver.Lister](p.Driver); ok {
			for range l.List(ctx, "") {
				p.seen++
			}
		}
	},
	// The answer contains all holders and waiters.
	"bytes": func(p *plantedDriver, ctx context.Context, c driver.Claim) { _, _ = p.Inspect(ctx, c.Name) },
	// The client sends a request for every tenth of its leases.
	"requests": func(p *plantedDriver, ctx context.Context, c driver.Claim) {
		p.mu.Lock()
		all := slices.Collect(maps.Values(p.held))
		p.mu.Unlock()
		for i := 0; i < len(all); i += 10 {
			_, _ = p.Renew(ctx, all[i:i+1])
		}
	},
}

// A plantedDriver has an Acquire that is too expensive.
type plantedDriver struct {
	driver.Driver

	before func(p *plantedDriver, ctx context.Context, c driver.Claim)
	mu     sync.Mutex // protects held and seen
	held   map[driver.Token]driver.LeaseRef
	seen   uint64
}

func planted(d driver.Driver, name string) (driver.Driver, error) {
	before, ok := plants[name]
	if !ok {
		return nil, fmt.Errorf("no plant %q; the plants are %s", name, strings.Join(slices.Sorted(maps.Keys(plants)), ", "))
	}
	return &plantedDriver{Driver: d, before: before, held: map[driver.Token]driver.LeaseRef{}}, nil
}

// Unwrap lets driver.As find the interfaces of the driver.
func (p *plantedDriver) Unwrap() driver.Driver { return p.Driver }

func (p *plantedDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	p.before(p, ctx, c)
	g, err := p.Driver.Acquire(ctx, c)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held[c.Token] = servertest.Lease(c)
	}
	return g, err
}

func (p *plantedDriver) Release(ctx context.Context, l driver.LeaseRef) error {
	p.mu.Lock()
	delete(p.held, l.Token)
	p.mu.Unlock()
	return p.Driver.Release(ctx, l)
}
