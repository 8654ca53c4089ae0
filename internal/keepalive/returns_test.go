package keepalive_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/keepalive"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Nothing is kept with what is returned here.
type (
	returns  = keepalive.Returns[struct{}]
	returned = keepalive.Return[struct{}]
)

func at(d time.Duration) time.Time { return start.Add(d) }

func some(r *returns, n int) []*returned {
	out := make([]*returned, n)
	for i := range out {
		out[i] = &returned{TTL: time.Minute, Until: at(time.Hour)}
		r.Add(out[i], start)
	}
	return out
}

// take takes all that may go now.
func take(r *returns, now time.Time) (out []*returned, wait time.Duration) {
	for {
		x, wait := r.Take(now)
		if x == nil {
			return out, wait
		}
		out = append(out, x)
	}
}

func TestNoMoreThanOutAreUnderWay(t *testing.T) {
	r := &returns{}
	all := some(r, 1000)
	under, _ := take(r, start)
	if len(under) != keepalive.MaxInFlight {
		t.Fatalf("%d are under way", len(under))
	}
	for i := 0; r.Len() > 0; i++ {
		if under[0] != all[i] {
			t.Fatal("they do not go in order")
		}
		r.Answered(under[0], start, start, keepalive.Done)
		more, _ := take(r, start)
		under = append(under[1:], more...)
	}
}

func TestWhatMayArriveYetIsReleasedOnceMore(t *testing.T) {
	r := &returns{}
	x := &returned{TTL: time.Minute, Again: at(3 * time.Second), Until: at(time.Hour)}
	x.Lease.MinHold = time.Minute
	r.Add(x, start)
	if got, _ := r.Take(start); got != x {
		t.Fatal("it does not go at once")
	}
	r.Answered(x, start, at(time.Millisecond), keepalive.Done)
	if got, wait := r.Take(at(time.Second)); got != nil || wait != 2*time.Second {
		t.Fatalf("after the first, the next is in %v", wait)
	}
	got, _ := r.Take(at(3 * time.Second))
	if got != x || x.Lease.MinHold != 0 {
		t.Fatalf("then: %+v", got)
	}
	r.Answered(x, at(3*time.Second), at(3*time.Second), keepalive.Done)
	if r.Len() != 0 {
		t.Error("and it is not over")
	}
}

// A release that was sent before the end is not the last word, though it was answered
// after it.
func TestOnlyWhatWasSentAfterTheEndCounts(t *testing.T) {
	r := &returns{}
	x := &returned{TTL: time.Minute, Again: at(3 * time.Second), Until: at(time.Hour)}
	r.Add(x, start)
	_, _ = r.Take(start)
	r.Answered(x, at(2*time.Second), at(4*time.Second), keepalive.Done)
	if got, _ := r.Take(at(4 * time.Second)); got != x {
		t.Error("it is over")
	}
}

func TestWhileAllFailsOneIsAskedForASecond(t *testing.T) {
	r := &returns{}
	some(r, 500)
	asked, now := 0, start
	for now.Before(at(100 * time.Second)) {
		under, wait := take(r, now)
		asked += len(under)
		if len(under) > 1 && now.After(at(10*time.Second)) {
			t.Fatalf("%d at once", len(under))
		}
		for _, x := range under {
			r.Answered(x, now, now, keepalive.Failed)
		}
		if len(under) == 0 {
			now = now.Add(wait)
		}
	}
	if asked > 500+120 {
		t.Errorf("asked %d times in 100 s", asked)
	}

	// It is back. The first answer lets two go, those let four, and so on.
	rounds := 0
	for now = now.Add(2 * time.Second); r.Len() > 0; rounds++ {
		under, _ := take(r, now)
		for _, x := range under {
			r.Answered(x, now, now, keepalive.Done)
		}
	}
	if rounds > 20 {
		t.Errorf("it took %d rounds", rounds)
	}
}

func TestWhatIsNewDoesNotWaitForWhatFails(t *testing.T) {
	r := &returns{}
	for _, x := range some(r, 5) {
		_, _ = r.Take(start)
		r.Answered(x, start, start, keepalive.Failed)
	}
	now := at(time.Minute)
	hung, _ := take(r, now)
	if len(hung) != 1 {
		t.Fatalf("%d of those that failed are under way", len(hung))
	}
	x := &returned{Until: at(time.Hour)}
	r.Add(x, now)
	if got, _ := r.Take(now); got != x {
		t.Error("it waits")
	}
}

func TestWhatHasEndedByItselfIsForgotten(t *testing.T) {
	r := &returns{}
	some(r, 10)
	if under, _ := take(r, at(time.Hour)); len(under) != 0 || r.Len() != 0 {
		t.Errorf("%d are sent, %d are left", len(under), r.Len())
	}
}

func TestTheLastRoundSendsEverythingOnce(t *testing.T) {
	r := &returns{}
	all := some(r, 20)
	under, _ := take(r, start)
	for _, x := range under[:10] {
		r.Answered(x, start, start, keepalive.Failed)
	}
	r.LastRound()
	for _, x := range under[10:] { // they were under way
		r.Answered(x, start, start, keepalive.Failed)
	}
	under, _ = take(r, start)
	if len(under) != 20 || under[0] != all[0] {
		t.Fatalf("%d are sent", len(under))
	}
	r.Answered(under[0], start, start, keepalive.Done)
	for _, x := range under[1:] {
		r.Answered(x, start, start, keepalive.Failed)
	}
	if more, _ := take(r, at(time.Minute)); len(more) != 0 || r.Len() != 0 || r.Unreleased() != 19 {
		t.Errorf("%d more are sent, %d are left", len(more), r.Unreleased())
	}
}
