package drivertest

import (
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
	"pgregory.net/rapid"
)

// testRandom sends the same random operations to the backend under test and to memlock,
// and requires the same answers. With an injected clock both have this clock, time
// passes, and fences are equal. Otherwise no lease or place expires, and fences have the
// same order.
func testRandom(s *suite) {
	s.timeless = true
	s.test("OperationsAreAnsweredAsByMemlock", func(k *kit) {
		k.runCases(func(t *rapid.T, isTooLong func() bool) {
			r := newRandom(k, t)
			actions := map[string]func(*rapid.T){
				"acquire": r.acquire,
				"again":   r.acquire, // the most frequent operation
				"renew":   r.renew,
				"release": r.release,
				"settle":  r.release, // releases must be as frequent as claims, otherwise few claims are granted
				"break":   r.breakOne,
				"advance": r.advance,
				"":        r.compareEntries,
			}
			for name, act := range actions {
				actions[name] = func(t *rapid.T) {
					if !isTooLong() {
						act(t)
					}
				}
			}
			t.Repeat(actions)
		})
	})

	s.test("OperationsAreAnsweredAlikeByBothClients", func(k *kit) {
		// The effect of one client's call is visible to the other at once.
		k.runCases(func(t *rapid.T, _ func() bool) {
			name := k.newName()
			c := k.mutex(named(name))
			if rapid.Bool().Draw(t, "reader") {
				c = k.reader(named(name))
			}
			held := false
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				d := k.eitherClient(t)
				switch rapid.IntRange(0, 2).Draw(t, "operation") {
				case 0:
					_, err := d.Acquire(k.ctx, c)
					t.Logf("acquire: %v", err)
					if err != nil {
						t.Fatalf("Acquire: %v; want it granted", err)
					}
					held = true
				case 1:
					err := d.Release(k.ctx, lease(c))
					t.Logf("release: %v", err)
					if (err == nil) != held {
						t.Fatalf("Release: %v, and held was %v", err, held)
					}
					held = false
				case 2:
					answers, err := d.Renew(k.ctx, []driver.LeaseRef{lease(c)})
					t.Logf("renew: %v, %v", answers, err)
					if err != nil || (answers[0] == nil) != held {
						t.Fatalf("Renew: %v, %v, and held was %v", answers, err, held)
					}
				}
			}
		})
	})
}

const (
	maxRandomTime = time.Minute // after this time a subtest begins no case and no operation
	maxShortCases = 8           // the number of cases with -short and a real clock
)

// runCases runs f on random cases, each with the time limit of a subtest. isTooLong
// reports whether the subtest has taken so long that the case must end.
func (k *kit) runCases(f func(t *rapid.T, isTooLong func() bool)) {
	subtestCtx, done, failed := k.ctx, 0, false
	isTooLong := func() bool { return time.Since(k.began) > maxRandomTime }
	defer func() {
		if k.ctx = subtestCtx; isTooLong() {
			k.T.Logf("the answers took so long that the subtest ended after %v, with %d random cases", maxRandomTime, done)
		}
	}()
	// rapid repeats a failed case, to make it shorter. Then the time does not count.
	rapid.Check(k, func(t *rapid.T) {
		shrinking := failed
		if !shrinking && (isTooLong() || k.suite.short && done == maxShortCases) {
			return
		}
		ctx, cancel := k.suite.caseContext(k.T, k.unit)
		defer cancel()
		k.ctx = ctx
		k.setDeadline(ctx)
		failed = true // f may end the goroutine
		f(t, func() bool { return !shrinking && isTooLong() })
		failed = shrinking
		done++
	})
}

// eitherClient draws one of the clients. It draws a bool, because rapid prints drawn
// values, and a client may contain a password.
func (k *kit) eitherClient(t *rapid.T) *client {
	if rapid.Bool().Draw(t, "by the second client") {
		return k.b
	}
	return k.a
}

func (k *kit) newName() string { return fmt.Sprintf("%s/%d", k.name, serial.Add(1)) }

// randomCase is one random case: some claims of one or two names, and both drivers.
type randomCase struct {
	k           *kit
	oracle      driver.Driver
	unit        time.Duration
	claims      []driver.Claim
	names       []string
	lastFences  []fencePair // for each claim, the fences of its last grant
	fences      map[string][]fencePair
	highest     map[string]uint64 // for each name, the highest fence granted so far
	minFences   []uint64          // for each claim, the least fence that it may get
	fencesEqual bool              // fences must be equal, and not only in the same order
}

// fencePair is a fence of the backend under test, and the oracle's for the same grant.
type fencePair struct{ got, want uint64 }

func newRandom(k *kit, t *rapid.T) *randomCase {
	r := &randomCase{k: k, unit: long, fences: map[string][]fencePair{}, highest: map[string]uint64{}, fencesEqual: k.suite.Clock != nil && !k.suite.NodeClocksDiffer}
	o := &memlock.Options{}
	if k.suite.Clock != nil {
		r.unit, o.Now = k.unit, k.suite.Clock.Now
	} else {
		o.Now = memlock.NewClock(time.Now()).Now // stands still: no lease ends on the other side
	}
	r.oracle = memlock.New(o)

	for range rapid.IntRange(1, 2).Draw(t, "names") {
		r.names = append(r.names, k.newName())
	}
	limits := []int{1, 2, 3, driver.Unlimited}
	if k.suite.NodeClocksDiffer || k.suite.IsQuorum { // a larger limit than the others' would be an advantage
		limits = []int{rapid.SampledFrom(limits).Draw(t, "limit of all")}
	}
	for i := range rapid.IntRange(2, 6).Draw(t, "claims") {
		limit := rapid.SampledFrom(limits).Draw(t, "limit")
		var weight int
		if limit == driver.Unlimited {
			weight = rapid.SampledFrom([]int{1, driver.Unlimited}).Draw(t, "weight")
		} else {
			weight = rapid.IntRange(1, limit).Draw(t, "weight")
		}
		c := k.permits(weight, limit, named(rapid.SampledFrom(r.names).Draw(t, "name")))
		c.Owner.Client = fmt.Sprintf("claim %d", i)
		c.TTL, c.QueueTTL = r.drawDuration(t, "TTL", 1), r.drawDuration(t, "queue TTL", 1)
		c.LockDelay = r.drawDuration(t, "lock-delay", 0)
		c.Fences = rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "fences")
		c.Value, c.ValueBelow = r.drawValue(t, "value"), r.drawValue(t, "above")
		r.claims = append(r.claims, c)
	}
	r.lastFences, r.minFences = make([]fencePair, len(r.claims)), make([]uint64, len(r.claims))
	return r
}

// drawDuration draws one of few multiples of the unit, so that ends often coincide.
func (r *randomCase) drawDuration(t *rapid.T, what string, least int) time.Duration {
	return time.Duration(rapid.IntRange(least, 4).Draw(t, what)) * r.unit
}

// drawValue draws one of a few values, and often none.
func (r *randomCase) drawValue(t *rapid.T, what string) []byte {
	if r.k.suite.IsQuorum {
		return nil
	}
	return rapid.SampledFrom([][]byte{nil, nil, nil, {}, {0}, []byte("a"), []byte("ab"), {0xff}}).Draw(t, what)
}

// clientFor returns the client that sends a claim or releases it. On a quorum it is
// always the same client, because releases of a refused try may still be under way: they
// would end a lease that another client gets with the same token.
func (r *randomCase) clientFor(t *rapid.T, claim int) *client {
	if r.k.suite.IsQuorum {
		return []*client{r.k.a, r.k.b}[claim%2]
	}
	return r.k.eitherClient(t)
}

func (r *randomCase) drawClaim(t *rapid.T) int {
	return rapid.IntRange(0, len(r.claims)-1).Draw(t, "claim")
}

func (r *randomCase) acquire(t *rapid.T) {
	i := r.drawClaim(t)
	c := r.claims[i]
	c.Queue = rapid.Bool().Draw(t, "queue")
	c.Force = rapid.IntRange(0, 9).Draw(t, "force") == 0
	if r.minFences[i] == 0 {
		r.minFences[i] = r.highest[c.Name] + 1
	}
	got, gotErr := r.clientFor(t, i).Acquire(r.k.ctx, c)
	want, wantErr := r.oracle.Acquire(r.k.ctx, c)
	r.wantSame(t, "Acquire", gotErr, wantErr)
	if gotErr != nil {
		return
	}
	r.fencesEqual = r.fencesEqual && got.Fences == want.Fences // a driver may grant fewer fences than requested
	if r.wantSameOrder(t, c.Name, fencePair{got.Fence, want.Fence}); got.Fence < r.minFences[i] {
		t.Fatalf("fence %d, and %d was granted before the claim was sent", got.Fence, r.minFences[i]-1)
	}
	r.highest[c.Name] = max(r.highest[c.Name], got.Fence+uint64(got.Fences)-1)
	r.lastFences[i] = fencePair{got.Fence, want.Fence}
}

// renew renews a batch in which names and leases may occur several times.
func (r *randomCase) renew(t *rapid.T) {
	var batch []driver.LeaseRef
	for range rapid.IntRange(0, 3).Draw(t, "batch") {
		l := lease(r.claims[r.drawClaim(t)])
		if rapid.IntRange(0, 4).Draw(t, "of another name") == 0 {
			l.Name = rapid.SampledFrom(r.names).Draw(t, "name")
		}
		l.TTL, l.Value = r.drawDuration(t, "TTL", 1), r.drawValue(t, "value")
		for _, same := range batch {
			if same.Token == l.Token {
				l.TTL = same.TTL // otherwise either of the two could be the last
			}
		}
		batch = append(batch, l)
	}
	got, err := r.k.eitherClient(t).Renew(r.k.ctx, batch)
	want, _ := r.oracle.Renew(r.k.ctx, batch)
	if err != nil || len(got) != len(want) {
		t.Fatalf("Renew: %d answers, %v; want %d", len(got), err, len(want))
	}
	for i := range want {
		r.wantSame(t, fmt.Sprintf("Renew, answer %d,", i), got[i], want[i])
	}
}

func (r *randomCase) release(t *rapid.T) {
	i := r.drawClaim(t)
	l := lease(r.claims[i])
	if rapid.IntRange(0, 3).Draw(t, "minimum hold") == 0 {
		l.MinHold = r.drawDuration(t, "for", 0)
	}
	l.Value = r.drawValue(t, "value")
	r.wantSame(t, "Release", r.clientFor(t, i).Release(r.k.ctx, l), r.oracle.Release(r.k.ctx, l))
	r.minFences[i] = 0
}

// breakOne breaks the last lease of a claim, or a fence next to it if fences are equal.
// Otherwise the backend under test may have granted that fence to another claim.
func (r *randomCase) breakOne(t *rapid.T) {
	breaker, ok := r.k.eitherClient(t).Driver.(driver.LeaseBreaker)
	i := r.drawClaim(t)
	if !ok || r.lastFences[i].got == 0 {
		return
	}
	off := uint64(0)
	if r.fencesEqual {
		off = uint64(rapid.IntRange(0, 8).Draw(t, "off"))
	}
	delay := r.drawDuration(t, "delay", 0)
	by := driver.Owner{Client: "op"}
	name := r.claims[i].Name
	r.wantSame(t, "Break",
		breaker.Break(r.k.ctx, name, r.lastFences[i].got+off, delay, by),
		r.oracle.(driver.LeaseBreaker).Break(r.k.ctx, name, r.lastFences[i].want+off, delay, by))
}

// advance lets time pass with an injected clock, often to the end of a lease or place, or
// just before it.
func (r *randomCase) advance(t *rapid.T) {
	if r.k.suite.Clock == nil {
		return
	}
	d := r.drawDuration(t, "time", 0)
	if d > 0 && rapid.IntRange(0, 3).Draw(t, "just before") == 0 {
		d -= clockStep
	}
	r.k.suite.Clock.Advance(d)
}
