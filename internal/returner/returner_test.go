package returner

import (
	"testing"
	"time"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// The returns of these tests have no Claim.
type (
	testReturner = Returner[struct{}]
	testReturn   = Return[struct{}]
)

// newIdleReturner returns a Returner that sends no requests. The test takes the returns,
// and passes the time.
func newIdleReturner() *testReturner { return &testReturner{maxInFlight: MaxInFlight, closed: true} }

func at(d time.Duration) time.Time { return start.Add(d) }

func addReturns(r *testReturner, n int) []*testReturn {
	out := make([]*testReturn, n)
	for i := range out {
		out[i] = &testReturn{TTL: time.Minute, Until: at(time.Hour)}
		r.Add(out[i])
	}
	return out
}

// takeAll calls takeLocked until it returns nil.
func takeAll(r *testReturner, now time.Time) (out []*testReturn, wait time.Duration) {
	for {
		x, wait := r.takeLocked(now)
		if x == nil {
			return out, wait
		}
		out = append(out, x)
	}
}

func TestAReturnIsSentAgainAtReleaseAgainAt(t *testing.T) {
	r := newIdleReturner()
	x := &testReturn{TTL: time.Minute, ReleaseAgainAt: at(3 * time.Second), Until: at(time.Hour)}
	x.Lease.MinHold = time.Minute
	r.Add(x)
	if got, _ := r.takeLocked(start); got != x {
		t.Fatal("the return is not sent at once")
	}
	r.recordOutcomeLocked(x, start, at(time.Millisecond), Done)
	if got, wait := r.takeLocked(at(time.Second)); got != nil || wait != 2*time.Second {
		t.Fatalf("after the first release the wait is %v, want 2s", wait)
	}
	got, _ := r.takeLocked(at(3 * time.Second))
	if got != x || x.Lease.MinHold != 0 {
		t.Fatalf("at ReleaseAgainAt: %+v, want the same return without a minimum hold", got)
	}
	r.recordOutcomeLocked(x, at(3*time.Second), at(3*time.Second), Done)
	if r.lenLocked() != 0 {
		t.Error("the return is left after its last release")
	}
}

// A release that was sent before ReleaseAgainAt is not final, even if it is answered
// later.
func TestARequestSentBeforeReleaseAgainAtIsNotFinal(t *testing.T) {
	r := newIdleReturner()
	x := &testReturn{TTL: time.Minute, ReleaseAgainAt: at(3 * time.Second), Until: at(time.Hour)}
	r.Add(x)
	_, _ = r.takeLocked(start)
	r.recordOutcomeLocked(x, at(2*time.Second), at(4*time.Second), Done)
	if got, _ := r.takeLocked(at(4 * time.Second)); got != x {
		t.Error("the return is not sent again")
	}
}

func TestANewReturnDoesNotWaitForFailedOnes(t *testing.T) {
	r := newIdleReturner()
	for _, x := range addReturns(r, 5) {
		_, _ = r.takeLocked(start)
		r.recordOutcomeLocked(x, start, start, Failed)
	}
	now := at(time.Minute)
	retried, _ := takeAll(r, now)
	if len(retried) != 1 {
		t.Fatalf("%d failed returns are under way, want 1", len(retried))
	}
	x := &testReturn{Until: at(time.Hour)}
	r.Add(x)
	if got, _ := r.takeLocked(now); got != x {
		t.Error("the new return waits")
	}
}

func TestExpiredReturnsAreDropped(t *testing.T) {
	r := newIdleReturner()
	addReturns(r, 10)
	if taken, _ := takeAll(r, at(time.Hour)); len(taken) != 0 || r.lenLocked() != 0 {
		t.Errorf("%d returns are sent, %d are left; want none", len(taken), r.lenLocked())
	}
}
