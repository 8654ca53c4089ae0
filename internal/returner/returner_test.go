package returner

import (
	"testing"
	"time"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Nothing is kept with what is returned here.
type (
	returns  = Returner[struct{}]
	returned = Return[struct{}]
)

// still returns a Returner that sends nothing by itself: the test takes the returns, and
// says what the time is.
func still() *returns { return &returns{maxInFlight: MaxInFlight, closed: true} }

func at(d time.Duration) time.Time { return start.Add(d) }

func some(r *returns, n int) []*returned {
	out := make([]*returned, n)
	for i := range out {
		out[i] = &returned{TTL: time.Minute, Until: at(time.Hour)}
		r.Add(out[i])
	}
	return out
}

// take takes all that may go now.
func take(r *returns, now time.Time) (out []*returned, wait time.Duration) {
	for {
		x, wait := r.takeLocked(now)
		if x == nil {
			return out, wait
		}
		out = append(out, x)
	}
}

func TestWhatMayArriveYetIsReleasedOnceMore(t *testing.T) {
	r := still()
	x := &returned{TTL: time.Minute, ReleaseAgainAt: at(3 * time.Second), Until: at(time.Hour)}
	x.Lease.MinHold = time.Minute
	r.Add(x)
	if got, _ := r.takeLocked(start); got != x {
		t.Fatal("it does not go at once")
	}
	r.answeredLocked(x, start, at(time.Millisecond), Done)
	if got, wait := r.takeLocked(at(time.Second)); got != nil || wait != 2*time.Second {
		t.Fatalf("after the first, the next is in %v", wait)
	}
	got, _ := r.takeLocked(at(3 * time.Second))
	if got != x || x.Lease.MinHold != 0 {
		t.Fatalf("then: %+v", got)
	}
	r.answeredLocked(x, at(3*time.Second), at(3*time.Second), Done)
	if r.lenLocked() != 0 {
		t.Error("and it is not over")
	}
}

// A release that was sent before the end is not the last word, though it was answered
// after it.
func TestOnlyWhatWasSentAfterTheEndCounts(t *testing.T) {
	r := still()
	x := &returned{TTL: time.Minute, ReleaseAgainAt: at(3 * time.Second), Until: at(time.Hour)}
	r.Add(x)
	_, _ = r.takeLocked(start)
	r.answeredLocked(x, at(2*time.Second), at(4*time.Second), Done)
	if got, _ := r.takeLocked(at(4 * time.Second)); got != x {
		t.Error("it is over")
	}
}

func TestWhatIsNewDoesNotWaitForWhatFails(t *testing.T) {
	r := still()
	for _, x := range some(r, 5) {
		_, _ = r.takeLocked(start)
		r.answeredLocked(x, start, start, Failed)
	}
	now := at(time.Minute)
	hung, _ := take(r, now)
	if len(hung) != 1 {
		t.Fatalf("%d of those that failed are under way", len(hung))
	}
	x := &returned{Until: at(time.Hour)}
	r.Add(x)
	if got, _ := r.takeLocked(now); got != x {
		t.Error("it waits")
	}
}

func TestWhatHasEndedByItselfIsForgotten(t *testing.T) {
	r := still()
	some(r, 10)
	if under, _ := take(r, at(time.Hour)); len(under) != 0 || r.lenLocked() != 0 {
		t.Errorf("%d are sent, %d are left", len(under), r.lenLocked())
	}
}
