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

// lease is a lease whose term the tests change.
type lease struct {
	keepalive.Renewal[*lease]
	name       string
	term       trust.Term
	renewalTTL time.Duration // the TTL that a renewal asks for
}

func (l *lease) Plan(now clock.Reading) keepalive.RenewalPlan {
	return keepalive.RenewalPlan{Left: l.term.Left(now), TTL: l.renewalTTL, Extension: l.renewalTTL - l.term.LeaseLeft(now)}
}

// fixture has the Renewals of a client. Its time passes only when a test calls pass.
type fixture struct {
	*testing.T
	*keepalive.Renewals[*lease]
	now clock.Reading
}

func newFixture(t *testing.T) *fixture {
	fx := &fixture{T: t, now: clock.Reading{Mono: start}}
	fx.Renewals = keepalive.NewRenewals[*lease](fx.now)
	return fx
}

func (fx *fixture) pass(d time.Duration) { fx.now.Mono = fx.now.Mono.Add(d) }

func (fx *fixture) add(name string) *lease {
	l := &lease{name: name, renewalTTL: ttl, term: trust.NewTerm(fx.now, ttl, ttl/10)}
	if !fx.Add(&l.Renewal, l, ttl, keepalive.RenewIn(ttl, 0, l.term.Left(fx.now)), fx.now.Mono) {
		fx.Fatal("Add refused the lease")
	}
	return l
}

// step calls Due, and then Take until it returns no batch.
func (fx *fixture) step() (ended []*lease, batches []batch) {
	ended, _ = fx.Due(fx.now)
	for {
		leases, sent, _ := fx.Take(fx.now.Mono)
		if sent == nil {
			return ended, batches
		}
		batches = append(batches, batch{leases, sent})
	}
}

type batch struct {
	leases []*keepalive.Renewal[*lease]
	sent   *keepalive.Batch
}

func (b batch) has(l *lease) bool { return slices.Contains(b.leases, &l.Renewal) }

// wantOneBatch requires that exactly one batch is sent now, and returns it.
func (fx *fixture) wantOneBatch() batch {
	fx.Helper()
	_, batches := fx.step()
	if len(batches) != 1 {
		fx.Fatalf("%d batches are sent, want one", len(batches))
	}
	return batches[0]
}

// wantNothing requires that no batch is sent now, and no term is over.
func (fx *fixture) wantNothing() {
	fx.Helper()
	if ended, batches := fx.step(); len(ended)+len(batches) > 0 {
		fx.Fatalf("%d terms are over and %d batches are sent, want none", len(ended), len(batches))
	}
}

func (fx *fixture) answer(b batch, ok bool) {
	for _, x := range b.leases {
		failed := 0
		if ok {
			x.Lease.term = x.Lease.term.Renewed(fx.now, ttl, ttl/10)
		} else {
			failed = len(b.leases)
		}
		fx.ScheduleNext(x, b.sent, failed, x.Lease.term.Left(fx.now), fx.now.Mono)
	}
	fx.Done(b.sent, fx.now.Mono, ok)
}

func TestDueReturnsALeaseWhoseTermIsOverDuringARenewal(t *testing.T) {
	fx := newFixture(t)
	l := fx.add("x")
	fx.pass(ttl / 3)
	b := fx.wantOneBatch()
	fx.pass(ttl)
	ended, batches := fx.step()
	if len(ended) != 1 || ended[0] != l || len(batches) > 0 || fx.Len() > 0 {
		t.Fatalf("%d terms are over, %d batches are sent, %d leases are left", len(ended), len(batches), fx.Len())
	}
	fx.answer(b, true) // the answer is too late
	fx.pass(time.Hour)
	fx.wantNothing()
}

// Without any answer, 64 of 100 leases are sent alone. After another answer, all 100 are.
func TestAfterAliveAllFailedLeasesAreSentAlone(t *testing.T) {
	for _, alive := range []bool{false, true} {
		fx := newFixture(t)
		for range 100 {
			fx.add("x")
		}
		fx.pass(ttl / 3)
		if alive {
			fx.Alive(fx.now.Mono)
		}
		fx.answer(fx.wantOneBatch(), false)
		together := 0
		for range 20 {
			fx.pass(100 * time.Millisecond)
			_, batches := fx.step()
			for _, b := range batches {
				if len(b.leases) > 1 {
					together += len(b.leases)
				}
				fx.answer(b, false)
			}
		}
		if all := together == 100; all != alive {
			t.Errorf("with another answer: %v; %d leases were sent in small batches", alive, together)
		}
	}
}

func TestAQueuedLeaseThatWasReleasedIsNotSent(t *testing.T) {
	fx := newFixture(t)
	a, b := fx.add("a"), fx.add("b")
	fx.pass(ttl / 3)
	if ended, _ := fx.Due(fx.now); len(ended) > 0 {
		t.Fatal("Due returned a lease before its end")
	}
	fx.Remove(&a.Renewal)
	sent, _, _ := fx.Take(fx.now.Mono)
	if len(sent) != 1 || sent[0].Lease != b {
		t.Fatalf("%d leases are sent, want one", len(sent))
	}
	if fx.Idle(&a.Renewal) != nil {
		t.Error("Idle waits for a renewal that was not sent")
	}
}

func TestCheckDuringARenewalSendsAnotherRequest(t *testing.T) {
	fx := newFixture(t)
	l := fx.add("x")
	fx.Check(fx.now.Mono, &l.Renewal)
	b := fx.wantOneBatch()
	if !b.has(l) || !l.InDoubt() {
		t.Fatal("Check did not send the lease, or it is not in doubt")
	}
	fx.Check(fx.now.Mono) // all leases
	fx.wantNothing()
	fx.answer(b, true)
	if !l.InDoubt() {
		t.Error("the lease is not in doubt, although the answer may be older than the second Check")
	}
	fx.answer(fx.wantOneBatch(), true)
	if l.InDoubt() {
		t.Error("the lease is still in doubt")
	}
	fx.wantNothing()
}

func TestALeaseThatARenewalWouldNotExtendIsSentOnlyInDoubt(t *testing.T) {
	fx := newFixture(t)
	l := fx.add("x")
	l.renewalTTL = ttl / 2
	fx.pass(ttl / 3)
	fx.wantNothing()
	fx.Check(fx.now.Mono, &l.Renewal)
	fx.answer(fx.wantOneBatch(), true)
	l.renewalTTL = time.Millisecond // too short for any backend
	fx.Check(fx.now.Mono, &l.Renewal)
	fx.wantNothing()
}

func TestWakeIsReadableIfTheCallerWouldSleepTooLong(t *testing.T) {
	fx := newFixture(t)
	woken := func() bool {
		select {
		case <-fx.Wake():
			return true
		default:
			return false
		}
	}
	if _, next := fx.Due(fx.now); next < time.Hour || woken() {
		t.Fatalf("without leases the next call of Due is in %v", next)
	}
	l := fx.add("x")
	if !woken() {
		t.Error("the first lease does not wake the caller")
	}
	if _, next := fx.Due(fx.now); next > time.Second {
		t.Errorf("a sleep of the machine would be noticed after %v", next)
	}
	fx.add("y")
	if woken() {
		t.Error("a lease that is due later than the next call of Due wakes the caller")
	}
	fx.Check(fx.now.Mono, &l.Renewal)
	if !woken() {
		t.Error("a check does not wake the caller")
	}
}

func TestALateAnswerDoesNotDelayTheNextRenewal(t *testing.T) {
	fx := newFixture(t)
	l := fx.add("x")
	fx.pass(ttl / 3)
	b := fx.wantOneBatch()
	l.term = trust.NewTerm(fx.now, ttl, ttl/10)
	fx.pass(ttl / 3) // until the answer arrives
	fx.ScheduleNext(b.leases[0], b.sent, 0, l.term.Left(fx.now), fx.now.Mono)
	fx.Done(b.sent, fx.now.Mono, true)
	if b := fx.wantOneBatch(); !b.has(l) {
		t.Error("the lease is not renewed again at once")
	}
}
