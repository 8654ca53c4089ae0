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

// When the clock of a server is set, or another leader stamps, a client has a wrong idea
// of it. This test gives it a wrong idea, which is the same for all that it does.

var wrong = []time.Duration{-time.Minute, -200 * time.Millisecond, 200 * time.Millisecond, time.Minute}

func TestAWrongIdeaOfTheTimeIsFoundOut(t *testing.T) {
	t.Parallel()
	url, _, _ := place(t)
	a, b := openDriver(t, url), openDriver(t, url)
	for i, off := range wrong {
		c := mutex(fmt.Sprint("n", i))
		c.TTL = 50 * time.Second // less than the wrong ideas, and more than a slow machine needs
		began := time.Now()
		a.Believes(off)
		first := gets(t, a, c)
		e, err := b.Inspect(ctx, c.Name)
		if err != nil || len(e.Holders) != 1 || e.Holders[0].ExpiresIn > c.TTL+5*time.Second || e.Holders[0].ExpiresIn < c.TTL-5*time.Second-time.Since(began) {
			t.Errorf("%v off: %+v, %v", off, e, err)
		}
		b.Believes(off)
		isRefused(t, b, mutex(c.Name))
		a.Believes(off)
		renews(t, a, c)
		a.Believes(off)
		releases(t, a, c)
		b.Believes(off)
		if g := gets(t, b, mutex(c.Name)); g.Fence <= first.Fence {
			t.Errorf("%v off: fence %d after %d", off, g.Fence, first.Fence)
		}
	}
}

func TestOfManyWithWrongIdeasOfTheTimeOneGetsIt(t *testing.T) {
	t.Parallel()
	url, _, _ := place(t)
	all := make([]*natslock.Driver, 8)
	for i := range all {
		all[i] = openDriver(t, url)
	}
	for round := range 20 {
		name := fmt.Sprint("n", round)
		var granted atomic.Int64
		var done sync.WaitGroup
		for i, d := range all {
			d.Believes(wrong[(round+i*(round%2))%len(wrong)]) // all the same one, or each another one
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
			t.Fatalf("%d hold %s", granted.Load(), name)
		}
	}
}
