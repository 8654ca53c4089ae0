package keepalive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/trust"
)

const ttl = 30 * time.Second

// lease is held until a time that the tests move.
type lease struct {
	keepalive.Renewal[*lease]
	name string
	term trust.Term
	most time.Duration // that a renewal asks for
}

func (l *lease) Plan(now clock.Reading) keepalive.RenewalPlan {
	return keepalive.RenewalPlan{Left: l.term.Left(now), TTL: l.most, Extension: l.most - l.term.LeaseLeft(now)}
}

// keeper is the renewals of a client, at a time that passes when a test says so.
type keeper struct {
	*testing.T
	*keepalive.Renewals[*lease]
	now clock.Reading
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{T: t, now: clock.Reading{Mono: start}}
	k.Renewals = keepalive.NewRenewals[*lease](k.now)
	return k
}

func (k *keeper) pass(d time.Duration) { k.now.Mono = k.now.Mono.Add(d) }

func (k *keeper) add(name string) *lease {
	l := &lease{name: name, most: ttl, term: trust.NewTerm(k.now, ttl, ttl/10)}
	if !k.Add(&l.Renewal, l, ttl, keepalive.RenewIn(ttl, 0, l.term.Left(k.now)), k.now.Mono) {
		k.Fatal("it is not taken")
	}
	return l
}

// step looks at what is due, and takes what is to be sent.
func (k *keeper) step() (over []*lease, batches []batch) {
	over, _ = k.Due(k.now)
	for {
		leases, under, _ := k.Take(k.now.Mono)
		if under == nil {
			return over, batches
		}
		batches = append(batches, batch{leases, under})
	}
}

type batch struct {
	leases []*keepalive.Renewal[*lease]
	under  *keepalive.Batch
}

func (b batch) has(l *lease) bool { return slices.Contains(b.leases, &l.Renewal) }

// one is the only batch that is to be sent now.
func (k *keeper) one() batch {
	k.Helper()
	_, batches := k.step()
	if len(batches) != 1 {
		k.Fatalf("%d batches are sent, want one", len(batches))
	}
	return batches[0]
}

// none fails the test if anything is sent now.
func (k *keeper) none() {
	k.Helper()
	if over, batches := k.step(); len(over)+len(batches) > 0 {
		k.Fatalf("%d are over and %d batches are sent, want nothing", len(over), len(batches))
	}
}

func (k *keeper) answer(b batch, ok bool) {
	for _, x := range b.leases {
		failed := 0
		if ok {
			x.Lease.term = x.Lease.term.Renewed(k.now, ttl, ttl/10)
		} else {
			failed = len(b.leases)
		}
		k.ScheduleNext(x, b.under, failed, x.Lease.term.Left(k.now), k.now.Mono)
	}
	k.Done(b.under, k.now.Mono, ok)
}

func TestTermThatEndsIsOverWhetherOrNotARenewalIsUnderWay(t *testing.T) {
	k := newKeeper(t)
	l := k.add("x")
	k.pass(ttl / 3)
	b := k.one()
	k.pass(ttl)
	over, batches := k.step()
	if len(over) != 1 || over[0] != l || len(batches) > 0 || k.Len() > 0 {
		t.Fatalf("%d are over, %d batches are sent, %d are held", len(over), len(batches), k.Len())
	}
	k.answer(b, true) // too late
	k.pass(time.Hour)
	k.none()
}

// While nothing is answered, 64 of 100 go alone. An answer to another request ends that.
func TestAliveLetsAllLeasesWithoutAnAnswerGoAlone(t *testing.T) {
	for _, alive := range []bool{false, true} {
		k := newKeeper(t)
		for range 100 {
			k.add("x")
		}
		k.pass(ttl / 3)
		if alive {
			k.Alive(k.now.Mono)
		}
		k.answer(k.one(), false)
		together := 0
		for range 20 {
			k.pass(100 * time.Millisecond)
			_, batches := k.step()
			for _, b := range batches {
				if len(b.leases) > 1 {
					together += len(b.leases)
				}
				k.answer(b, false)
			}
		}
		if all := together == 100; all != alive {
			t.Errorf("the backend answers another request: %v; in small batches went %d leases", alive, together)
		}
	}
}

func TestALeaseThatIsReleasedWhileItIsQueuedIsNotSent(t *testing.T) {
	k := newKeeper(t)
	a, b := k.add("a"), k.add("b")
	k.pass(ttl / 3)
	if over, _ := k.Due(k.now); len(over) > 0 {
		t.Fatal("they are not over")
	}
	k.Remove(&a.Renewal)
	sent, _, _ := k.Take(k.now.Mono)
	if len(sent) != 1 || sent[0].Lease != b {
		t.Fatalf("%d are sent", len(sent))
	}
	if k.Idle(&a.Renewal) != nil {
		t.Error("its release waits for a renewal that was not sent")
	}
}

func TestCheckAsksAtOnceAndOnceMoreIfARenewalIsUnderWay(t *testing.T) {
	k := newKeeper(t)
	l := k.add("x")
	k.Check(k.now.Mono, &l.Renewal)
	b := k.one()
	if !b.has(l) || !l.InDoubt() {
		t.Fatal("it is not asked for, or nobody doubts it")
	}
	k.Check(k.now.Mono) // all of them
	k.none()
	k.answer(b, true)
	if !l.InDoubt() {
		t.Error("the answer may be older than the second signal")
	}
	k.answer(k.one(), true)
	if l.InDoubt() {
		t.Error("it is still in doubt")
	}
	k.none()
}

func TestLeaseThatCannotLastLongerIsAskedForOnlyIfInDoubt(t *testing.T) {
	k := newKeeper(t)
	l := k.add("x")
	l.most = ttl / 2
	k.pass(ttl / 3)
	k.none()
	k.Check(k.now.Mono, &l.Renewal)
	k.answer(k.one(), true)
	l.most = time.Millisecond // what no backend takes
	k.Check(k.now.Mono, &l.Renewal)
	k.none()
}

func TestTheCallerOfDueIsWokenIfItWouldSleepTooLong(t *testing.T) {
	k := newKeeper(t)
	woken := func() bool {
		select {
		case <-k.Wake():
			return true
		default:
			return false
		}
	}
	if _, next := k.Due(k.now); next < time.Hour || woken() {
		t.Fatalf("with nothing to do the next look is in %v", next)
	}
	l := k.add("x")
	if !woken() {
		t.Error("the first lease wakes nobody")
	}
	if _, next := k.Due(k.now); next > time.Second {
		t.Errorf("a sleep of the machine is found after %v", next)
	}
	k.add("y")
	if woken() {
		t.Error("a lease that is due later than the next look wakes somebody")
	}
	k.Check(k.now.Mono, &l.Renewal)
	if !woken() {
		t.Error("a check wakes nobody")
	}
}

func TestARenewalThatWasAnsweredLateIsFollowedByTheNextInTime(t *testing.T) {
	k := newKeeper(t)
	l := k.add("x")
	k.pass(ttl / 3)
	b := k.one()
	l.term = trust.NewTerm(k.now, ttl, ttl/10)
	k.pass(ttl / 3) // the answer takes that long
	k.ScheduleNext(b.leases[0], b.under, 0, l.term.Left(k.now), k.now.Mono)
	k.Done(b.under, k.now.Mono, true)
	if b := k.one(); !b.has(l) {
		t.Error("it is not renewed again at once")
	}
}
