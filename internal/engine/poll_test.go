package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

const (
	quick        = 5 * time.Millisecond
	slow         = 250 * time.Millisecond
	lossInterval = 500 * time.Millisecond
)

// runPoller runs f beside a Poller in virtual time. pollsDuring sleeps, and returns the
// number of polls meanwhile.
func runPoller(t *testing.T, poll func(context.Context) error, f func(p *engine.Poller, pollNow chan<- struct{}, pollsDuring func(time.Duration) int)) {
	bubble.Test(t, func(t *testing.T) {
		var n atomic.Int64
		pollNow := make(chan struct{})
		p := &engine.Poller{Claims: engine.NewClaims(), Pace: engine.GrowingPace(quick, slow, 8), LossInterval: lossInterval, PollNow: pollNow}
		p.Poll = func(ctx context.Context) error {
			n.Add(1)
			return poll(ctx)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.Run(ctx) }()
		f(p, pollNow, func(d time.Duration) int {
			before := n.Load()
			time.Sleep(d)
			synctest.Wait()
			return int(n.Load() - before)
		})
		end()
		<-ended
	})
}

func pollNothing(context.Context) error { return nil }

// wantPolls requires that n, a number of polls, is in a range.
func wantPolls(t *testing.T, what string, n, low, high int) {
	t.Helper()
	if n < low || n > high {
		t.Errorf("%s: %d polls; want %d to %d", what, n, low, high)
	}
}

func addWaiter(c *engine.Claims, name string, position int, fence uint64) *driver.Claim {
	claim := &driver.Claim{Name: name, Token: driver.NewToken(), TTL: time.Minute, QueueTTL: time.Hour}
	c.Acquired(claim, time.Now(), &driver.HeldError{Position: position, Fence: fence})
	return claim
}

func TestThePollerSleepsWithoutClaims(t *testing.T) {
	runPoller(t, pollNothing, func(p *engine.Poller, _ chan<- struct{}, pollsDuring func(time.Duration) int) {
		wantPolls(t, "without claims", pollsDuring(time.Hour), 0, 0)
		c := addWaiter(p.Claims, "job", 1, 1)
		wantPolls(t, "just after it was woken", pollsDuring(quick), 1, 1)
		p.Claims.Drop(c.Token)
		wantPolls(t, "after the claim was dropped", pollsDuring(time.Hour), 0, 0)
	})
}

func TestPausesGrowUntilTheNameIsGranted(t *testing.T) {
	runPoller(t, pollNothing, func(p *engine.Poller, _ chan<- struct{}, pollsDuring func(time.Duration) int) {
		c := addWaiter(p.Claims, "job", 1, 1)
		wantPolls(t, "the first 40 ms", pollsDuring(40*time.Millisecond), 8, 12)
		wantPolls(t, "up to 400 ms", pollsDuring(360*time.Millisecond), 17, 28)
		pollsDuring(time.Minute)
		wantPolls(t, "each minute after that", pollsDuring(time.Minute), 213, 240)
		p.Claims.Acquired(c, time.Now(), &driver.HeldError{Position: 1, Fence: 1})
		wantPolls(t, "after its place was renewed", pollsDuring(time.Second), 3, 4)
		p.Claims.Compare([]engine.Claim{{Token: c.Token}}, &locktable.Entry{Fence: 2, Queue: []locktable.Waiter{{ClaimInfo: locktable.ClaimInfo{Token: c.Token}}}}, time.Now())
		pollsDuring(slow + slow/8)
		wantPolls(t, "after another grant", pollsDuring(time.Second), 10, 30)
	})
}

func TestPausesAreShorterNearerToTheHead(t *testing.T) {
	runPoller(t, pollNothing, func(p *engine.Poller, _ chan<- struct{}, pollsDuring func(time.Duration) int) {
		c := addWaiter(p.Claims, "job", 10, 1)
		wantPolls(t, "the tenth", pollsDuring(30*time.Millisecond), 0, 0)
		p.Claims.Acquired(c, time.Now(), &driver.HeldError{Position: 1, Fence: 10})
		wantPolls(t, "the first", pollsDuring(20*time.Millisecond), 3, 6)
		p.Claims.Drop(c.Token)
		addWaiter(p.Claims, "job", 10, 1)
		pollsDuring(time.Minute)
		wantPolls(t, "the tenth, while nothing changes", pollsDuring(time.Minute), 53, 60)
	})
}

func TestAHeldLeaseIsPolledEveryLossInterval(t *testing.T) {
	runPoller(t, pollNothing, func(p *engine.Poller, _ chan<- struct{}, pollsDuring func(time.Duration) int) {
		c := &driver.Claim{Name: "job", Token: driver.NewToken(), TTL: 10 * time.Second}
		p.Claims.Acquired(c, time.Now(), nil)
		wantPolls(t, "while it holds", pollsDuring(5*time.Second), 9, 11)
		p.Claims.Renewed([]driver.LeaseRef{{Name: "job", Token: c.Token, TTL: 10 * time.Second}}, time.Now(), []error{nil})
		wantPolls(t, "after a renewal", pollsDuring(9*time.Second), 17, 19)
		wantPolls(t, "after it expired", pollsDuring(time.Hour), 1, 4)
	})
}

func TestThePauseGrowsAfterEachFailedPoll(t *testing.T) {
	var down atomic.Bool
	poll := func(context.Context) error {
		if down.Load() {
			return errors.New("down")
		}
		return nil
	}
	runPoller(t, poll, func(p *engine.Poller, _ chan<- struct{}, pollsDuring func(time.Duration) int) {
		addWaiter(p.Claims, "job", 1, 1)
		down.Store(true)
		wantPolls(t, "the first second", pollsDuring(time.Second), 5, 12)
		pollsDuring(10 * time.Second)
		wantPolls(t, "each minute after that", pollsDuring(time.Minute), 40, 120)
		addWaiter(p.Claims, "other", 1, 1)
		wantPolls(t, "when another claim is added", pollsDuring(50*time.Millisecond), 0, 1)
		down.Store(false)
		wantPolls(t, "when the server is up again", pollsDuring(3*time.Second), 5, 60)
	})
}

func TestAHangingPollIsCanceled(t *testing.T) {
	ended := 0
	poll := func(ctx context.Context) error {
		<-ctx.Done()
		ended++
		return ctx.Err()
	}
	runPoller(t, poll, func(p *engine.Poller, _ chan<- struct{}, pollsDuring func(time.Duration) int) {
		addWaiter(p.Claims, "job", 1, 1)
		if n := pollsDuring(time.Minute); n < 9 || ended < n-1 {
			t.Errorf("%d polls began and %d ended", n, ended)
		}
	})
}

func TestPollNowMakesAPollDueAtOnce(t *testing.T) {
	runPoller(t, pollNothing, func(p *engine.Poller, pollNow chan<- struct{}, pollsDuring func(time.Duration) int) {
		go func() { time.Sleep(time.Millisecond); pollNow <- struct{}{} }()
		wantPolls(t, "without claims", pollsDuring(time.Second), 1, 1)
		addWaiter(p.Claims, "job", 1, 1)
		pollsDuring(time.Hour)
		go func() { time.Sleep(time.Millisecond); pollNow <- struct{}{} }()
		wantPolls(t, "with a waiting claim", pollsDuring(slow-quick), 1, 2)
	})
}
