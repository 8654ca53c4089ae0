package natslock_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/natslock"
)

// When the server's clock is set, or another leader stamps, a client assumes a wrong
// time. These tests set the time that a client assumes, which has the same effect.

var offsets = []time.Duration{-time.Minute, -200 * time.Millisecond, 200 * time.Millisecond, time.Minute}

func TestAWrongServerTimeIsCorrected(t *testing.T) {
	t.Parallel()
	url, _, _ := ownBucket(t)
	a, b := openDriver(t, url), openDriver(t, url)
	for i, offset := range offsets {
		c := mutex(fmt.Sprint("n", i))
		c.TTL = 50 * time.Second // less than the largest offset, and more than a slow machine needs
		began := time.Now()
		a.AssumeServerAhead(offset)
		first := gets(t, a, c)
		e, err := b.Inspect(ctx, c.Name)
		if err != nil || len(e.Holders) != 1 || e.Holders[0].ExpiresIn > c.TTL+5*time.Second || e.Holders[0].ExpiresIn < c.TTL-5*time.Second-time.Since(began) {
			t.Errorf("%v off: Inspect returns %+v, %v", offset, e, err)
		}
		b.AssumeServerAhead(offset)
		isRefused(t, b, mutex(c.Name))
		a.AssumeServerAhead(offset)
		renews(t, a, c)
		a.AssumeServerAhead(offset)
		releases(t, a, c)
		b.AssumeServerAhead(offset)
		if g := gets(t, b, mutex(c.Name)); g.Fence <= first.Fence {
			t.Errorf("%v off: fence %d after %d", offset, g.Fence, first.Fence)
		}
	}
}

func TestOneOfManyClientsWithWrongTimesGetsTheName(t *testing.T) {
	t.Parallel()
	url, _, _ := ownBucket(t)
	all := make([]*natslock.Driver, 8)
	for i := range all {
		all[i] = openDriver(t, url)
	}
	for round := range 20 {
		name := fmt.Sprint("n", round)
		var granted atomic.Int64
		var done sync.WaitGroup
		for i, d := range all {
			d.AssumeServerAhead(offsets[(round+i*(round%2))%len(offsets)]) // the same offset for all, or different ones
			done.Go(func() {
				switch _, err := d.Acquire(ctx, mutex(name)); {
				case err == nil:
					granted.Add(1)
				case !errors.Is(err, driver.ErrHeld):
					t.Error(err)
				}
			})
		}
		if done.Wait(); granted.Load() != 1 {
			t.Fatalf("%d clients hold %s; want 1", granted.Load(), name)
		}
	}
}
