package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Full tests a backend whose server limits the size of an entry: holder and other are
// drivers of a server with a limit of about 200 kB. Full makes claims queue for two names
// until each is full. Further claims must be refused with a permanent error that has
// limit in its hint: the name of the setting, or other advice. The holders and the
// waiters must not be affected: leases are renewed, even together, places are kept,
// values are written, and releases pass the names on.
func Full(t *testing.T, limit string, holder, other driver.Driver) {
	t.Helper()
	f := &fullTest{T: t, limit: limit, holder: holder, other: other}
	names := []string{"one", "two"}
	for _, name := range names {
		c := f.claim(name, 0, driver.Exclusive)
		f.held = append(f.held, c)
		f.wantErr("Acquire", f.acquire(holder, c), nil)
	}
	waiters := map[string][]driver.Claim{}
	for _, name := range names {
		for _, label := range []int{driver.MaxLabelSize, 20, 0} { // until not even a small claim fits
			waiters[name] = append(waiters[name], f.fill(name, label)...)
		}
	}
	f.renew()
	for _, name := range names {
		f.passOn(name, waiters[name])
	}
}

type fullTest struct {
	*testing.T
	limit         string
	holder, other driver.Driver
	held          []driver.Claim
}

func (f *fullTest) claim(name string, label, weight int) driver.Claim {
	labels := map[string]string{}
	for i := range 8 {
		labels[fmt.Sprintf("label %d", i)] = strings.Repeat("x", label)
	}
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242, Labels: labels},
		Weight: weight, Limit: driver.Unlimited, TTL: 10 * time.Minute, QueueTTL: 10 * time.Minute, Queue: true,
	}
}

func (f *fullTest) acquire(d driver.Driver, c driver.Claim) error {
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	_, err := d.Acquire(ctx, c)
	return err
}

func (f *fullTest) wantErr(what string, err, wantErr error) {
	f.Helper()
	if !errors.Is(err, wantErr) {
		f.Fatalf("%s: %v; want %v", what, err, wantErr)
	}
}

// fill makes claims with labels of that size join the queue, until one is refused for
// good. Every fourth claim is exclusive.
func (f *fullTest) fill(name string, label int) (waiters []driver.Claim) {
	for range 2000 {
		c := f.claim(name, label, 1)
		if len(waiters)%4 == 3 {
			c.Weight = driver.Exclusive
		}
		err := f.acquire(f.other, c)
		if errors.Is(err, driver.ErrHeld) {
			waiters = append(waiters, c)
			continue
		}
		if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent || !strings.Contains(e.Hint, f.limit) {
			f.Fatalf("with %d waiters: %v; want ErrHeld, or a permanent error whose hint names %s", len(waiters), err, f.limit)
		}
		return waiters
	}
	f.Fatalf("with %d waiters the entry is not full", len(waiters))
	return nil
}

// renew renews all leases together, and writes their values.
func (f *fullTest) renew() {
	f.Helper()
	leases := make([]driver.LeaseRef, len(f.held))
	for i, c := range f.held {
		leases[i] = driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL, Value: make([]byte, driver.MaxValue)}
	}
	each, err := f.holder.Renew(f.Context(), leases)
	f.wantErr("Renew", errors.Join(append(each, err)...), nil)
}

// passOn releases the leases of a name repeatedly, until all waiters have held it.
func (f *fullTest) passOn(name string, waiters []driver.Claim) {
	f.Logf("%d waiters for %s", len(waiters), name)
	for len(waiters) > 0 {
		var others []driver.Claim
		for _, c := range f.held {
			if c.Name != name {
				others = append(others, c)
				continue
			}
			f.wantErr("Release", f.holder.Release(f.Context(), driver.LeaseRef{Name: name, Token: c.Token, TTL: c.TTL}), nil)
		}
		f.held = others
		for len(waiters) > 0 {
			err := f.acquire(f.other, waiters[0])
			if errors.Is(err, driver.ErrHeld) {
				break
			}
			f.wantErr("Acquire of the first waiter", err, nil)
			f.held, waiters = append(f.held, waiters[0]), waiters[1:]
		}
		f.renew()
		if len(f.held) == len(others) {
			f.Fatalf("%d waiters for %s, which is free", len(waiters), name)
		}
	}
}
