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

// Full is for a backend whose server limits the size of an entry: holder and other are
// drivers of a server whose limit is about 200 kB. Full makes claims queue for two names
// until each is full. It wants further claims to be refused for good, with limit in the
// hint: the name of the setting, or what to do instead. The holders and the waiters must
// not notice: leases are renewed, also together, places are kept, values are written, and
// releases pass the names on.
func Full(t *testing.T, limit string, holder, other driver.Driver) {
	t.Helper()
	f := &full{T: t, limit: limit, holder: holder, other: other}
	names := []string{"one", "two"}
	for _, name := range names {
		c := f.claim(name, 0, driver.Exclusive)
		f.held = append(f.held, c)
		f.want("Acquire", f.acquire(holder, c), nil)
	}
	waits := map[string][]driver.Claim{}
	for _, name := range names {
		for _, label := range []int{driver.MaxLabelSize, 20, 0} { // until nothing fits, however small
			waits[name] = append(waits[name], f.fill(name, label)...)
		}
	}
	f.renew()
	for _, name := range names {
		f.passOn(name, waits[name])
	}
}

type full struct {
	*testing.T
	limit         string
	holder, other driver.Driver
	held          []driver.Claim
}

func (f *full) claim(name string, label, weight int) driver.Claim {
	labels := map[string]string{}
	for i := range 8 {
		labels[fmt.Sprintf("label %d", i)] = strings.Repeat("x", label)
	}
	return driver.Claim{
		Name: name, Token: driver.NewToken(), Owner: driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242, Labels: labels},
		Weight: weight, Limit: driver.Unlimited, TTL: 10 * time.Minute, QueueTTL: 10 * time.Minute, Queue: true,
	}
}

func (f *full) acquire(d driver.Driver, c driver.Claim) error {
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	_, err := d.Acquire(ctx, c)
	return err
}

func (f *full) want(what string, err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("%s: %v; want %v", what, err, want)
	}
}

// fill makes claims with labels of that size join the queue, until one is refused. Every
// fourth of them is exclusive.
func (f *full) fill(name string, label int) (waits []driver.Claim) {
	for range 2000 {
		c := f.claim(name, label, 1)
		if len(waits)%4 == 3 {
			c.Weight = driver.Exclusive
		}
		err := f.acquire(f.other, c)
		if errors.Is(err, driver.ErrHeld) {
			waits = append(waits, c)
			continue
		}
		if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent || !strings.Contains(e.Hint, f.limit) {
			f.Fatalf("with %d who wait: %v; want ErrHeld, or a permanent error whose hint names %s", len(waits), err, f.limit)
		}
		return waits
	}
	f.Fatalf("%d wait, and the entry is not full", len(waits))
	return nil
}

// renew renews all leases together, and writes their values.
func (f *full) renew() {
	f.Helper()
	leases := make([]driver.LeaseRef, len(f.held))
	for i, c := range f.held {
		leases[i] = driver.LeaseRef{Name: c.Name, Token: c.Token, TTL: c.TTL, Value: make([]byte, driver.MaxValue)}
	}
	each, err := f.holder.Renew(f.Context(), leases)
	f.want("Renew", errors.Join(append(each, err)...), nil)
}

// passOn releases the leases of a name repeatedly, until all waiters have held it.
func (f *full) passOn(name string, waits []driver.Claim) {
	f.Logf("%d wait for %s", len(waits), name)
	for len(waits) > 0 {
		var others []driver.Claim
		for _, c := range f.held {
			if c.Name != name {
				others = append(others, c)
				continue
			}
			f.want("Release", f.holder.Release(f.Context(), driver.LeaseRef{Name: name, Token: c.Token, TTL: c.TTL}), nil)
		}
		f.held = others
		for len(waits) > 0 {
			err := f.acquire(f.other, waits[0])
			if errors.Is(err, driver.ErrHeld) {
				break
			}
			f.want("Acquire of the first who waits", err, nil)
			f.held, waits = append(f.held, waits[0]), waits[1:]
		}
		f.renew()
		if len(f.held) == len(others) {
			f.Fatalf("%d wait for %s, which is free", len(waits), name)
		}
	}
}
