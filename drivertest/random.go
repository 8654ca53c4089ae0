package drivertest

import (
	"fmt"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
	"pgregory.net/rapid"
)

// testRandom sends the same random operations to the backend under test and to memlock,
// and wants the same answers. With an injected clock both have the same clock, time
// passes, and fences are equal. Otherwise everything lasts long, and fences have the same
// order.
func testRandom(s *suite) {
	s.timeless = true
	s.test("OperationsAreAnsweredAsByMemlock", func(k *kit) {
		k.cases(func(t *rapid.T, isLong func() bool) {
			r := newRandom(k, t)
			actions := map[string]func(*rapid.T){
				"acquire": r.acquire,
				"again":   r.acquire, // the most frequent operation
				"renew":   r.renew,
				"release": r.release,
				"settle":  r.release, // as many ends as beginnings, otherwise no claim is ever granted
				"break":   r.breakOne,
				"advance": r.advance,
				"":        r.compare,
			}
			for name, act := range actions {
				actions[name] = func(t *rapid.T) {
					if !isLong() {
						act(t)
					}
				}
			}
			t.Repeat(actions)
		})
	})

	s.test("OperationsAreAnsweredAlikeByBothClients", func(k *kit) {
		// One client sees at once what the other did.
		k.cases(func(t *rapid.T, _ func() bool) {
			name := k.newName()
			c := k.mutex(on(name))
			if rapid.Bool().Draw(t, "reader") {
				c = k.reader(on(name))
			}
			held := false
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				d := k.either(t)
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
	randomTime = time.Minute // after it a subtest begins no further case, and no operation
	shortCases = 8           // on a server with -short, beside other subtests
)

// cases runs f on random cases, each of which has the time of a subtest. isLong reports
// whether the subtest has taken so long that the case has to end.
func (k *kit) cases(f func(t *rapid.T, isLong func() bool)) {
	whole, done, failed := k.ctx, 0, false
	isLong := func() bool { return time.Since(k.began) > randomTime }
	defer func() {
		if k.ctx = whole; isLong() {
			k.T.Logf("the answers took so long that after %v only %d random cases were done, and no other was begun", randomTime, done)
		}
	}()
	// A failed case is tried again, to make it shorter. Then the time does not count.
	rapid.Check(k, func(t *rapid.T) {
		again := failed
		if !again && (isLong() || k.s.short && done == shortCases) {
			return
		}
		ctx, cancel := k.s.bound(k.T, k.u)
		defer cancel()
		k.ctx = ctx
		k.setDeadline(ctx)
		failed = true // unless f returns
		f(t, func() bool { return !again && isLong() })
		failed = again
		done++
	})
}

// either draws one of the clients. rapid prints what is drawn, and a client may have a
// password inside, so it draws a bool.
func (k *kit) either(t *rapid.T) *client {
	if rapid.Bool().Draw(t, "by the second client") {
		return k.b
	}
	return k.a
}

func (k *kit) newName() string { return fmt.Sprintf("%s/%d", k.name, serial.Add(1)) }

// random is one run: a few claims on a few names, and both drivers.
type random struct {
	k      *kit
	oracle driver.Driver
	unit   time.Duration
	claims []driver.Claim
	names  []string
	last   []pair // of each claim: the last grants that both answered with
	fences map[string][]pair
	shown  map[string]uint64 // per name, the last fence of the highest range that was granted so far
	floor  []uint64          // of each claim: shown, when it was first sent
	exact  bool              // fences are equal, and not only in the same order
}

// pair is a fence of the backend under test, and the oracle's for the same grant.
type pair struct{ got, want uint64 }

func newRandom(k *kit, t *rapid.T) *random {
	r := &random{k: k, unit: long, fences: map[string][]pair{}, shown: map[string]uint64{}, exact: k.s.Clock != nil && !k.s.AgreesLate}
	o := &memlock.Options{}
	if k.s.Clock != nil {
		r.unit, o.Now = k.u, k.s.Clock.Now
	} else {
		o.Now = memlock.NewClock(time.Now()).Now // it stands still: nothing ends on the other side either
	}
	r.oracle = memlock.New(o)

	for range rapid.IntRange(1, 2).Draw(t, "names") {
		r.names = append(r.names, k.newName())
	}
	limits := []int{1, 2, 3, driver.Unlimited}
	if k.s.AgreesLate || k.s.WritesLate { // otherwise a larger limit than the others' would be an advantage
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
		c := k.permits(weight, limit, on(rapid.SampledFrom(r.names).Draw(t, "name")))
		c.Owner.Client = fmt.Sprintf("claim %d", i)
		c.TTL, c.QueueTTL = r.drawDuration(t, "TTL", 1), r.drawDuration(t, "queue TTL", 1)
		c.LockDelay = r.drawDuration(t, "lock-delay", 0)
		c.Fences = rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "fences")
		c.Value, c.ValueBelow = r.value(t, "value"), r.value(t, "above")
		r.claims = append(r.claims, c)
	}
	r.last, r.floor = make([]pair, len(r.claims)), make([]uint64, len(r.claims))
	return r
}

// span draws a time. There are few, and they are multiples of each other, so that ends
// often coincide.
func (r *random) drawDuration(t *rapid.T, what string, least int) time.Duration {
	return time.Duration(rapid.IntRange(least, 4).Draw(t, what)) * r.unit
}

// value draws one of a few values; usually none.
func (r *random) value(t *rapid.T, what string) []byte {
	if r.k.s.WritesLate {
		return nil
	}
	return rapid.SampledFrom([][]byte{nil, nil, nil, {}, {0}, []byte("a"), []byte("ab"), {0xff}}).Draw(t, what)
}

func (r *random) client(t *rapid.T) *client {
	return r.k.either(t)
}

// owner is the client that sends a claim and releases it. On a quorum it is always the
// same: releases of a refused try may still be under way, and if another client meanwhile
// gets a grant for the same token, they end that lease.
func (r *random) owner(t *rapid.T, claim int) *client {
	if r.k.s.WritesLate {
		return []*client{r.k.a, r.k.b}[claim%2]
	}
	return r.client(t)
}

func (r *random) claim(t *rapid.T) int { return rapid.IntRange(0, len(r.claims)-1).Draw(t, "claim") }

func (r *random) acquire(t *rapid.T) {
	i := r.claim(t)
	c := r.claims[i]
	c.Queue = rapid.Bool().Draw(t, "queue")
	c.Force = rapid.IntRange(0, 9).Draw(t, "force") == 0
	if r.floor[i] == 0 {
		r.floor[i] = r.shown[c.Name] + 1
	}
	got, gotErr := r.owner(t, i).Acquire(r.k.ctx, c)
	want, wantErr := r.oracle.Acquire(r.k.ctx, c)
	r.wantSame(t, "Acquire", gotErr, wantErr)
	if gotErr != nil {
		return
	}
	r.exact = r.exact && got.Fences == want.Fences // fewer fences than asked for are allowed
	if r.wantSameOrder(t, c.Name, pair{got.Fence, want.Fence}); got.Fence < r.floor[i] {
		t.Fatalf("fence %d, and %d was granted before it was asked for", got.Fence, r.floor[i]-1)
	}
	r.shown[c.Name] = max(r.shown[c.Name], got.Fence+uint64(got.Fences)-1)
	r.last[i] = pair{got.Fence, want.Fence}
}

// renew renews a batch in which names, and leases, may occur several times.
func (r *random) renew(t *rapid.T) {
	var batch []driver.LeaseRef
	for range rapid.IntRange(0, 3).Draw(t, "batch") {
		l := lease(r.claims[r.claim(t)])
		if rapid.IntRange(0, 4).Draw(t, "of another name") == 0 {
			l.Name = rapid.SampledFrom(r.names).Draw(t, "name")
		}
		l.TTL, l.Value = r.drawDuration(t, "TTL", 1), r.value(t, "value")
		for _, same := range batch {
			if same.Token == l.Token {
				l.TTL = same.TTL // of two in one batch, either may be the last
			}
		}
		batch = append(batch, l)
	}
	got, err := r.client(t).Renew(r.k.ctx, batch)
	want, _ := r.oracle.Renew(r.k.ctx, batch)
	if err != nil || len(got) != len(want) {
		t.Fatalf("Renew: %d answers, %v; want %d", len(got), err, len(want))
	}
	for i := range want {
		r.wantSame(t, fmt.Sprintf("Renew, answer %d,", i), got[i], want[i])
	}
}

func (r *random) release(t *rapid.T) {
	i := r.claim(t)
	l := lease(r.claims[i])
	if rapid.IntRange(0, 3).Draw(t, "minimum hold") == 0 {
		l.MinHold = r.drawDuration(t, "for", 0)
	}
	l.Value = r.value(t, "value")
	r.wantSame(t, "Release", r.owner(t, i).Release(r.k.ctx, l), r.oracle.Release(r.k.ctx, l))
	r.floor[i] = 0
}

// breakOne breaks the last grant of a claim, or a fence next to it. The two drivers may
// differ on fences far from it: if their fences are not equal, the backend under test may
// have granted such a fence to another claim.
func (r *random) breakOne(t *rapid.T) {
	breaker, ok := r.client(t).Driver.(driver.LeaseBreaker)
	i := r.claim(t)
	if !ok || r.last[i].got == 0 {
		return
	}
	off := uint64(0)
	if r.exact {
		off = uint64(rapid.IntRange(0, 8).Draw(t, "off"))
	}
	delay := r.drawDuration(t, "delay", 0)
	by := driver.Owner{Client: "op"}
	name := r.claims[i].Name
	r.wantSame(t, "Break",
		breaker.Break(r.k.ctx, name, r.last[i].got+off, delay, by),
		r.oracle.(driver.LeaseBreaker).Break(r.k.ctx, name, r.last[i].want+off, delay, by))
}

// advance lets time pass if it can: to an end of some lease or place, or just before it.
func (r *random) advance(t *rapid.T) {
	if r.k.s.Clock == nil {
		return
	}
	d := r.drawDuration(t, "time", 0)
	if d > 0 && rapid.IntRange(0, 3).Draw(t, "just before") == 0 {
		d -= instant
	}
	r.k.s.Clock.Advance(d)
}
