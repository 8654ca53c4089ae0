package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// basics is the first topic.
const basics = "Basics"

// testBasics tests the steps that all other topics use. It reports only the first failed
// subtest, because that one is closest to the cause.
func testBasics(s *suite) {
	s.earlierReported = make(chan struct{})
	close(s.earlierReported)

	s.testWithAdvice("Properties", "PropertiesSayWhatItIs", func(k *kit) {
		p := k.a.Properties()
		if p.Backend == "" || !strings.Contains(p.FenceSurvives.String(), " ") || p.MinTTL < 0 || p.MinTTL > driver.MaxTTL {
			k.Errorf("%+v; want a Backend, a constant or a sentence in FenceSurvives, and a MinTTL from 0 to %v", p, driver.MaxTTL)
		}
		if !slices.Contains([]driver.ClockSource{driver.ClockProcess, driver.ClockHost, driver.ClockServer}, p.Clock) {
			k.Errorf("Clock = %q; want process, host or server", p.Clock)
		}
	})

	s.testWithAdvice("Acquire of a new name: nothing is stored for it, and that is no error", "AFreeNameIsGranted", func(k *kit) {
		k.a.wantGranted(k.mutex())
	})

	s.testWithAdvice("how a name becomes a key: collation, path, pattern, escape, or its length", "NamesAreComparedByteForByte", func(k *kit) {
		for _, name := range []string{k.name, strings.ToUpper(k.name), k.name + " ", k.name + "/", k.name + "%2F", k.name + "\u00e9",
			k.name + "e\u0301", k.name + "*", k.name + "/..", k.name + strings.Repeat("x", driver.MaxName-len(k.name))} {
			if _, err := k.a.Acquire(k.ctx, k.mutex(named(name))); err != nil {
				k.Errorf("%+q: %v; want it granted, because only similar names are held", name, err)
			}
		}
	})

	s.testWithAdvice("whether the grant is stored before Acquire returns, where each client reads it; and whether the bytes are stored "+
		"and read unchanged (they are not text)", "AnotherClientSeesWhoHoldsIt", func(k *kit) {
		g := k.a.wantGranted(k.mutex(owner(driver.Owner{Client: "first"})))
		held := k.b.wantHeld(k.mutex())
		if h := held.Holder; held.Holders != 1 || h.Fence != g.Fence || h.Owner.Client != "first" {
			k.Errorf("the HeldError is %+v; want one holder, the fence %d and the owner %q", held, g.Fence, "first")
		}
		k.b.wantFences(g.Fence)
	})

	s.testWithAdvice("the token: it identifies the claim, whichever client sends it", "TheSameTokenIsTheSameGrant", func(k *kit) {
		c := k.mutex()
		first := k.a.wantGranted(c)
		if again := k.b.wantGranted(c); again.Fence != first.Fence {
			k.Errorf("fences %d and %d for one token; want the same", first.Fence, again.Fence)
		}
		k.b.mustRenew(c)
	})

	s.testWithAdvice("Release: its effect is stored, too, and with another token it changes nothing", "AReleaseLetsTheNextIn", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		k.b.wantNothingToRelease(k.mutex())
		k.b.wantHeld(k.mutex())
		k.a.mustRelease(c)
		k.b.wantGranted(k.mutex())
		k.a.wantLost(c)
	})

	s.testWithAdvice("whether a read is current (not from a cache or an old replica), and whether a write fails if the entry has changed since it was read",
		"ChangesOfAnotherClientAreSeenAtOnce", func(k *kit) {
			k.b.wantFree(k.name)
			for range 3 {
				c := k.mutex()
				g := k.a.wantGranted(c)
				k.b.wantFences(g.Fence)
				k.b.wantHeld(k.mutex())
				k.a.mustRelease(c)
				k.b.wantFree(k.name)
				d := k.mutex()
				g = k.b.wantGranted(d)
				k.a.wantFences(g.Fence)
				k.a.wantHeld(k.mutex())
				k.b.mustRelease(d)
			}
		})

	s.testWithAdvice("the queue: it is stored with the entry, and Release grants to its head", "AReleasePassesTheNameToTheFirstThatWaits", func(k *kit) {
		c, waiter := k.mutex(), k.mutex(queue(long))
		k.a.wantGranted(c)
		k.b.wantPlace(waiter, 1)
		k.a.wantHeld(k.mutex())
		k.a.mustRelease(c)
		k.a.wantHeld(k.mutex())
		k.b.wantGranted(waiter)
	})

	s.testWithAdvice("how large a value the store takes, and whether it returns an error for one that is too large: this entry has 70 KB",
		"ALargeEntryIsKeptWhole", func(k *kit) {
			const waiters = 8
			labels := map[string]string{}
			for i := range driver.MaxLabels {
				labels[fmt.Sprintf("%0*d", driver.MaxLabelSize, i)] = strings.Repeat("x", driver.MaxLabelSize)
			}
			large := owner(driver.Owner{Client: "large", Labels: labels})
			largest := bytes.Repeat([]byte{0xff}, driver.MaxValue)
			c := k.mutex(large)
			c.Value = largest
			k.a.wantGranted(c)
			for i := range waiters {
				k.a.wantPlace(k.mutex(queue(long), large), i+1)
			}
			e := k.b.wantHoldersWaiters(1, waiters)
			if !bytes.Equal(e.Value, largest) || !maps.Equal(k.onlyHolder(e.Holders).Owner.Labels, labels) {
				k.Errorf("a value of %d bytes, and %d labels of the holder; want those of the claim", len(e.Value), len(e.Holders[0].Owner.Labels))
			}
			for i, w := range e.Waiters {
				if !maps.Equal(w.Owner.Labels, labels) {
					k.Errorf("waiter %d has %d labels; want those of its claim", i+1, len(w.Owner.Labels))
				}
			}
		})

	s.testWithAdvice("whether the last fence is stored, and kept when nobody holds the name; and that it is at least the clock in microseconds",
		"FencesRise", func(k *kit) {
			var last uint64
			for i := range 5 {
				c := k.mutex()
				began := time.Now()
				g := []*client{k.a, k.b}[i%2].wantGranted(c)
				if took := int64(time.Since(began)); i == 0 || took < s.fastestGrant.Load() {
					s.fastestGrant.Store(took)
				}
				if g.Fence <= last {
					k.Fatalf("VIOLATION: fence %d after %d; want it to rise", g.Fence, last)
				}
				last = g.Fence
				k.b.mustRelease(c)
			}
		})

	s.testWithAdvice("whether reading an entry and storing it is one step: a transaction, a lock, or a swap that fails if the value is not the one "+
		"that was read; this concerns goroutines of one client, too", "OnlyOneOfManyConcurrentClaimsIsGranted", func(k *kit) {
		for i := range 5 {
			var granted atomic.Int32
			k.inParallel(8, func(j int) {
				_, err := []*client{k.a, k.b}[j%2].Acquire(k.ctx, k.mutex(named(k.nthName(i))))
				switch {
				case err == nil:
					granted.Add(1)
				case !errors.Is(err, driver.ErrHeld):
					k.Errorf("Acquire: %v; want it granted, or a *driver.HeldError", err)
				}
			})
			switch n := granted.Load(); {
			case n > 1:
				k.Fatalf("VIOLATION: %d of 8 were granted one mutex; want 1", n)
			case n == 0 && !k.suite.IsQuorum: // maybe no claim got a majority
				k.Fatalf("none of 8 was granted a free mutex")
			}
		}
	})

	s.testWithAdvice("whose clock decides, its unit and its zone; and that what has expired is removed before anything else",
		"ALeaseLastsItsTTLAndNoLonger", func(k *kit) {
			c, short := k.mutex(ttl(2*k.unit)), k.mutex(ttl(k.unit), named(k.nthName(1)))
			k.a.wantGranted(c)
			k.a.wantGranted(short)
			k.advance(k.unit / 2)
			k.b.wantHeld(k.mutex(named(short.Name)))
			k.advancePast(k.unit / 2)
			k.b.wantGranted(k.mutex(named(short.Name)))
			k.b.wantHeld(k.mutex())
			k.a.wantLost(short)
		})
}
