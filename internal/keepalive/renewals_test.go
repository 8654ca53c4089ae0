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
	return keepalive.RenewalPlan{Left: l.term.Left(now), TTL: l.most, Longer: l.most - l.term.LeaseLeft(now)}
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
		unanswered := 0
		if ok {
			x.Lease.term = x.Lease.term.Renewed(k.now, ttl, ttl/10)
		} else {
			unanswered = len(b.leases)
		}
		k.Answered(x, b.under, unanswered, x.Lease.term.Left(k.now), k.now.Mono)
	}
	k.Done(b.under, k.now.Mono, ok)
}

func TestWhatIsDueAtAboutTheSameTimeGoesTogether(t *testing.T) {
	k := newKeeper(t)
	for range 100 {
		k.add("x")
	}
	k.none()
	k.pass(ttl / 3)
	for range 3 {
		b := k.one()
		if len(b.leases) != 100 {
			t.Fatalf("%d go in a batch", len(b.leases))
		}
		k.none()
		k.answer(b, true)
		k.none()
		k.pass(ttl / 3)
	}
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

func TestFailedRenewalIsRepeatedUntilTheTermEnds(t *testing.T) {
	k := newKeeper(t)
	k.add("x")
	k.pass(ttl / 3)
	sent := 0
	for k.Len() > 0 && sent < 1000 {
		over, batches := k.step()
		for _, b := range batches {
			sent++
			k.answer(b, false)
		}
		if len(over) > 0 && k.now.Mono.Before(at(ttl-ttl/10)) {
			t.Fatalf("it is over after %v", k.now.Mono.Sub(start))
		}
		k.pass(10 * time.Millisecond)
	}
	if sent < 10 || sent > 100 {
		t.Errorf("it was asked for %d times", sent)
	}
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

func TestWhatIsReleasedWhileItStandsInLineIsNotSent(t *testing.T) {
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

func TestReleaseHearsOfTheEndOfARenewalUnderWay(t *testing.T) {
	for name, end := range map[string]func(k *keeper, b batch){
		"answered": func(k *keeper, b batch) { k.answer(b, true) },
		"failed":   func(k *keeper, b batch) { k.answer(b, false) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			l := k.add("x")
			k.pass(ttl / 3)
			b := k.one()
			idle := k.Idle(&l.Renewal)
			if !b.has(l) || idle == nil {
				t.Fatal("it is not under way")
			}
			k.Remove(&l.Renewal)
			select {
			case <-idle:
				t.Error("it is said to be over already")
			default:
			}
			end(k, b)
			select {
			case <-idle:
			default:
				t.Error("nobody says that it is over")
			}
		})
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

func TestAfterASleepEverythingIsLookedAt(t *testing.T) {
	k := newKeeper(t)
	for range 10 {
		k.add("x")
	}
	k.now.Slept = time.Hour
	if over, _ := k.step(); len(over) != 10 {
		t.Errorf("%d are over", len(over))
	}
}

func TestWhoSleepsTooLongIsWoken(t *testing.T) {
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

func TestEmptyIsSaidWhenTheLastHasLeft(t *testing.T) {
	k := newKeeper(t)
	a, b := k.add("a"), k.add("b")
	empty := k.Empty()
	k.Remove(&a.Renewal)
	select {
	case <-empty:
		t.Fatal("one is left")
	default:
	}
	k.Remove(&b.Renewal)
	select {
	case <-empty:
	default:
		t.Error("nobody says so")
	}
}

func TestNothingIsTakenAfterStop(t *testing.T) {
	k := newKeeper(t)
	l := k.add("x")
	if left := k.Stop(); len(left) != 1 || left[0] != l {
		t.Errorf("%d are left", len(left))
	}
	late := &lease{most: ttl}
	if k.Add(&late.Renewal, late, ttl, ttl, k.now.Mono) || k.Len() != 1 {
		t.Error("one more is taken")
	}
}

func TestARenewalThatWasAnsweredLateIsFollowedByTheNextInTime(t *testing.T) {
	k := newKeeper(t)
	l := k.add("x")
	k.pass(ttl / 3)
	b := k.one()
	l.term = trust.NewTerm(k.now, ttl, ttl/10)
	k.pass(ttl / 3) // the answer takes that long
	k.Answered(b.leases[0], b.under, 0, l.term.Left(k.now), k.now.Mono)
	k.Done(b.under, k.now.Mono, true)
	if b := k.one(); !b.has(l) {
		t.Error("it is not renewed again at once")
	}
}
