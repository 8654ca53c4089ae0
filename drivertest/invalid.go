package drivertest

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
)

// badNames are names that some backend cannot store byte for byte, or that cannot be
// shown.
var badNames = map[string]string{
	"Empty":          "",
	"Of256Bytes":     strings.Repeat("x", driver.MaxName+1),
	"Of256BytesUTF8": strings.Repeat("x", driver.MaxName-1) + "\u00e9",
	"NUL":            "a\x00b",
	"TrailingNUL":    "a\x00",
	"CRLF":           "a\r\nb",
	"Newline":        "a\n",
	"Tab":            "a\tb",
	"Escape":         "\x1b[2J",
	"Delete":         "a\x7f",
	"C1Control":      "a\u0085b",
	"InvalidUTF8":    "a\xffb",
	"Overlong":       "a\xc0\x80",
	"Surrogate":      "\xed\xa0\x80",
	"CutShort":       "caf\xc3",
}

// badClaims change one field of a valid claim.
var badClaims = map[string]option{
	"ZeroToken":            func(c *driver.Claim) { c.Token = driver.Token{} },
	"ZeroTTL":              ttl(0),
	"NegativeTTL":          ttl(-time.Second),
	"TTLTooShort":          ttl(driver.MinTTL - 1),
	"TTLTooLong":           ttl(driver.MaxTTL + 1),
	"OverflowingTTL":       ttl(1<<63 - 1),
	"MostNegativeTTL":      ttl(-1 << 63),
	"QueueWithoutQueueTTL": queue(0),
	"NegativeQueueTTL":     queue(-time.Second),
	"QueueTTLTooLong":      queue(driver.MaxTTL + 1),
	"NegativeLockDelay":    lockDelay(-1),
	"LockDelayTooLong":     lockDelay(driver.MaxTTL + 1),
	"ZeroWeight":           func(c *driver.Claim) { c.Weight = 0 },
	"NegativeWeight":       func(c *driver.Claim) { c.Weight = -1 },
	"ZeroLimit":            func(c *driver.Claim) { c.Weight, c.Limit = 1, 0 },
	"NegativeLimit":        func(c *driver.Claim) { c.Weight, c.Limit = 1, -1 },
	"WeightAboveLimit":     func(c *driver.Claim) { c.Weight, c.Limit = 4, 3 },
	"SomeOfAll":            func(c *driver.Claim) { c.Weight, c.Limit = 2, driver.Unlimited },
	"NegativeFences":       fences(-1),
	"TooManyFences":        fences(driver.MaxFences + 1),
	"TooManyLabels":        labels(driver.MaxLabels+1, "v"),
	"LabelTooLong":         labels(1, strings.Repeat("x", driver.MaxLabelSize+1)),
	"LabelNotUTF8":         labels(1, "\xff"),
	"LabelWithoutKey":      owner(driver.Owner{Labels: map[string]string{"": "v"}}),
	"NegativePID":          owner(driver.Owner{PID: -1}),
	"HostTooLong":          owner(driver.Owner{Host: strings.Repeat("h", 1<<17)}),
	"ClientTooLong":        owner(driver.Owner{Client: strings.Repeat("c", 1<<17)}),
	"ValueTooLong":         value(strings.Repeat("v", driver.MaxValue+1)),
	"ValueBelowTooLong":    valueBelow(strings.Repeat("v", driver.MaxValue+1)),
	"HostNotUTF8":          owner(driver.Owner{Host: "\xff"}),
}

func labels(n int, value string) option {
	return func(c *driver.Claim) {
		c.Owner.Labels = map[string]string{}
		for i := range n {
			c.Owner.Labels["key"+strconv.Itoa(i)] = value
		}
	}
}

// testInvalid tests that the backend refuses invalid input before it sends a request.
func testInvalid(s *suite) {
	s.timeless = true
	s.test("NamesAreRefused", func(k *kit) {
		calls := map[string]func(d *client, name string) error{
			"Acquire": func(d *client, name string) error {
				_, err := d.Acquire(k.ctx, k.mutex(named(name)))
				return err
			},
			"Renew": func(d *client, name string) error {
				_, err := d.Renew(k.ctx, []driver.LeaseRef{lease(k.mutex()), lease(k.mutex(named(name)))})
				return err
			},
			"Release": func(d *client, name string) error { return d.Release(k.ctx, lease(k.mutex(named(name)))) },
			"Inspect": func(d *client, name string) error {
				_, err := d.Inspect(k.ctx, name)
				return err
			},
		}
		if s.canBreak {
			calls["Break"] = func(d *client, name string) error {
				return d.Driver.(driver.LeaseBreaker).Break(k.ctx, name, 1, 0, driver.Owner{})
			}
		}
		for what, name := range badNames {
			for method, call := range calls {
				k.wantInvalid(method+" of the name "+what, call(k.a, name))
			}
		}
	})

	s.test("ClaimsAreRefusedAndLeaveNothing", func(k *kit) {
		for what, bad := range badClaims {
			_, err := k.a.Acquire(k.ctx, k.mutex(bad))
			k.wantInvalid(what, err)
		}
		k.b.wantHoldersWaiters(0, 0)
		k.a.wantGranted(k.mutex())
	})

	s.test("ClaimsAreRefusedAlikeWhileTheNameIsHeld", func(k *kit) {
		g := k.a.wantGranted(k.mutex())
		for what, bad := range badClaims {
			_, err := k.b.Acquire(k.ctx, k.mutex(force, queue(long), bad))
			k.wantInvalid(what, err)
		}
		k.a.wantFences(g.Fence)
		k.a.wantHoldersWaiters(1, 0)
	})

	s.test("RenewalsAndReleasesAreRefusedAndChangeNothing", func(k *kit) {
		c := k.mutex()
		k.a.wantGranted(c)
		for _, d := range []time.Duration{0, -1, driver.MinTTL - 1, driver.MaxTTL + 1, 1<<63 - 1} {
			_, err := k.a.Renew(k.ctx, []driver.LeaseRef{lease(c), {Name: c.Name, Token: c.Token, TTL: d}})
			k.wantInvalid("Renew for "+d.String(), err)
		}
		for _, d := range []time.Duration{-1, driver.MaxTTL + 1, 1<<63 - 1} {
			k.wantInvalid("MinHold of "+d.String(), k.a.Release(k.ctx, driver.LeaseRef{Name: c.Name, Token: c.Token, MinHold: d}))
		}
		withLongValue := withValue(c, strings.Repeat("v", driver.MaxValue+1))
		_, err := k.a.Renew(k.ctx, []driver.LeaseRef{lease(c), withLongValue})
		k.wantInvalid("Renew with a long value", err)
		k.wantInvalid("Release with a long value", k.a.Release(k.ctx, withLongValue))
		k.a.mustRenew(c)
	})

	if s.canBreak {
		s.test("BreaksAreRefusedAndChangeNothing", func(k *kit) {
			c := k.mutex()
			g := k.a.wantGranted(c)
			for _, d := range []time.Duration{-1, driver.MaxTTL + 1} {
				k.wantInvalid("Break with a delay of "+d.String(), k.b.breakLease(g.Fence, d, driver.Owner{}))
			}
			k.wantInvalid("Break by an invalid owner", k.b.breakLease(g.Fence, 0, driver.Owner{Labels: map[string]string{"": ""}}))
			k.a.mustRenew(c)
		})
	}

	s.test("TheLargestValidValuesAreAccepted", func(k *kit) {
		big := basictest.LargestOwner()
		big.Client = "c" // a quorum shortens a long one
		k.a.wantGranted(k.mutex(owner(big), fences(driver.MaxFences), ttl(driver.MaxTTL), lockDelay(driver.MaxTTL)))
		k.b.wantPlace(k.mutex(owner(big), fences(driver.MaxFences), ttl(driver.MaxTTL), lockDelay(driver.MaxTTL), queue(driver.MaxTTL)), 1)
		e := k.a.wantHoldersWaiters(1, 1)
		if !e.Holders[0].Owner.Equal(big) || !e.Waiters[0].Owner.Equal(big) {
			k.Error("Inspect does not show the same owner")
		}
	})
}
