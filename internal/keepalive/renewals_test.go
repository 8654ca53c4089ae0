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
	k := &fixture{T: t, now: clock.Reading{Mono: start}}
	k.Renewals = keepalive.NewRenewals[*lease](k.now)
	return k
}

func (k *fixture) pass(d time.Duration) { k.now.Mono = k.now.Mono.Add(d) }

func (k *fixture) add(name string) *lease {
	l := &lease{name: name, renewalTTL: ttl, term: trust.NewTerm(k.now, ttl, ttl/10)}
	if !k.Add(&l.Renewal, l, ttl, keepalive.RenewIn(ttl, 0, l.term.Left(k.now)), k.now.Mono) {
		k.Fatal("Add refused the lease")
	}
	return l
}

// step calls Due, and then Take until it returns no batch.
func (k *fixture) step() (ended []*lease, batches []batch) {
	ended, _ = k.Due(k.now)
	for {
		leases, sent, _ := k.Take(k.now.Mono)
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
func (k *fixture) wantOneBatch() batch {
	k.Helper()
	_, batches := k.step()
	if len(batches) != 1 {
		k.Fatalf("%d batches are sent, want one", len(batches))
	}
	return batches[0]
}

// wantNothing requires that no batch is sent now, and no term is over.
func (k *fixture) wantNothing() {
	k.Helper()
	if ended, batches := k.step(); len(ended)+len(batches) > 0 {
		k.Fatalf("%d terms are over and %d batches are sent, want none", len(ended), len(batches))
	}
}

func (k *fixture) answer(b batch, ok bool) {
	for _, x := range b.leases {
		failed := 0
		if ok {
			x.Lease.term = x.Lease.term.Renewed(k.now, ttl, ttl/10)
		} else {
			failed = len(b.leases)
		}
		k.ScheduleNext(x, b.sent, failed, x.Lease.term.Left(k.now), k.now.Mono)
	}
	k.Done(b.sent, k.now.Mono, ok)
}

func TestDueReturnsALeaseWhoseTermIsOverDuringARenewal(t *testing.T) {
	k := newFixture(t)
	l := k.add("x")
	k.pass(ttl / 3)
	b := k.wantOneBatch()
	k.pass(ttl)
	ended, batches := k.step()
	if len(ended) != 1 || ended[0] != l || len(batches) > 0 || k.Len() > 0 {
		t.Fatalf("%d terms are over, %d batches are sent, %d leases are left", len(ended), len(batches), k.Len())
	}
	k.answer(b, true) // the answer is too late
	k.pass(time.Hour)
	k.wantNothing()
}

// Without any answer, 64 of 100 leases are sent alone. After another answer all are.
func TestAfterAliveAllFailedLeasesAreSentAlone(t *testing.T) {
	for _, alive := range []bool{false, true} {
		k := newFixture(t)
		for range 100 {
			k.add("x")
		}
		k.pass(ttl / 3)
		if alive {
			k.Alive(k.now.Mono)
		}
		k.answer(k.wantOneBatch(), false)
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
			t.Errorf("with another answer: %v; %d leases were sent in small batches", alive, together)
		}
	}
}

func TestAQueuedLeaseThatWasReleasedIsNotSent(t *testing.T) {
	k := newFixture(t)
	a, b := k.add("a"), k.add("b")
	k.pass(ttl / 3)
	if ended, _ := k.Due(k.now); len(ended) > 0 {
		t.Fatal("Due returned a lease before its end")
	}
	k.Remove(&a.Renewal)
	sent, _, _ := k.Take(k.now.Mono)
	if len(sent) != 1 || sent[0].Lease != b {
		t.Fatalf("%d leases are sent, want one", len(sent))
	}
	if k.Idle(&a.Renewal) != nil {
		t.Error("Idle waits for a renewal that was not sent")
	}
}

func TestCheckDuringARenewalSendsAnotherRequest(t *testing.T) {
	k := newFixture(t)
	l := k.add("x")
	k.Check(k.now.Mono, &l.Renewal)
	b := k.wantOneBatch()
	if !b.has(l) || !l.InDoubt() {
		t.Fatal("Check did not send the lease, or it is not in doubt")
	}
	k.Check(k.now.Mono) // all leases
	k.wantNothing()
	k.answer(b, true)
	if !l.InDoubt() {
		t.Error("the lease is not in doubt, although the answer may be older than the second Check")
	}
	k.answer(k.wantOneBatch(), true)
	if l.InDoubt() {
		t.Error("the lease is still in doubt")
	}
	k.wantNothing()
}

func TestALeaseThatARenewalWouldNotExtendIsSentOnlyInDoubt(t *testing.T) {
	k := newFixture(t)
	l := k.add("x")
	l.renewalTTL = ttl / 2
	k.pass(ttl / 3)
	k.wantNothing()
	k.Check(k.now.Mono, &l.Renewal)
	k.answer(k.wantOneBatch(), true)
	l.renewalTTL = time.Millisecond // too short for any backend
	k.Check(k.now.Mono, &l.Renewal)
	k.wantNothing()
}

func TestWakeIsReadableIfTheCallerWouldSleepTooLong(t *testing.T) {
	k := newFixture(t)
	woken := func() bool {
		select {
		case <-k.Wake():
			return true
		default:
			return false
		}
	}
	if _, next := k.Due(k.now); next < time.Hour || woken() {
		t.Fatalf("without leases the next call of Due is in %v", next)
	}
	l := k.add("x")
	if !woken() {
		t.Error("the first lease does not wake the caller")
	}
	if _, next := k.Due(k.now); next > time.Second {
		t.Errorf("a sleep of the machine would be noticed after %v", next)
	}
	k.add("y")
	if woken() {
		t.Error("a lease that is due later than the next call of Due wakes the caller")
	}
	k.Check(k.now.Mono, &l.Renewal)
	if !woken() {
		t.Error("a check does not wake the caller")
	}
}

func TestALateAnswerDoesNotDelayTheNextRenewal(t *testing.T) {
	k := newFixture(t)
	l := k.add("x")
	k.pass(ttl / 3)
	b := k.wantOneBatch()
	l.term = trust.NewTerm(k.now, ttl, ttl/10)
	k.pass(ttl / 3) // until the answer arrives
	k.ScheduleNext(b.leases[0], b.sent, 0, l.term.Left(k.now), k.now.Mono)
	k.Done(b.sent, k.now.Mono, true)
	if b := k.wantOneBatch(); !b.has(l) {
		t.Error("the lease is not renewed again at once")
	}
}
