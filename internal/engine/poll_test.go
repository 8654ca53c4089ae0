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
	quick  = 5 * time.Millisecond
	slow   = 250 * time.Millisecond
	losses = 500 * time.Millisecond
)

// polled runs f beside a poller in virtual time. polls returns the number of polls that
// were made within some time.
func polled(t *testing.T, poll func(context.Context) error, f func(p *engine.Poller, call chan<- struct{}, polls func(time.Duration) int)) {
	bubble.Test(t, func(t *testing.T) {
		var n atomic.Int64
		call := make(chan struct{})
		p := &engine.Poller{Claims: engine.NewClaims(), Pace: engine.GrowingPace(quick, slow, 8), LossInterval: losses, PollNow: call}
		p.Poll = func(ctx context.Context) error {
			n.Add(1)
			return poll(ctx)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.Run(ctx) }()
		f(p, call, func(d time.Duration) int {
			before := n.Load()
			time.Sleep(d)
			synctest.Wait()
			return int(n.Load() - before)
		})
		end()
		<-ended
	})
}

func seesNothing(context.Context) error { return nil }

// between checks that a number is in a range.
func between(t *testing.T, what string, n, low, high int) {
	t.Helper()
	if n < low || n > high {
		t.Errorf("%s: %d polls; want %d to %d", what, n, low, high)
	}
}

func waits(c *engine.Claims, name string, position int, fence uint64) *driver.Claim {
	claim := &driver.Claim{Name: name, Token: driver.NewToken(), TTL: time.Minute, QueueTTL: time.Hour}
	c.Acquired(claim, time.Now(), &driver.HeldError{Position: position, Fence: fence})
	return claim
}

func TestThePollerSleepsWithoutClaims(t *testing.T) {
	polled(t, seesNothing, func(p *engine.Poller, _ chan<- struct{}, polls func(time.Duration) int) {
		between(t, "without claims", polls(time.Hour), 0, 0)
		c := waits(p.Claims, "job", 1, 1)
		between(t, "just after it was woken", polls(quick), 1, 1)
		p.Claims.Drop(c.Token)
		between(t, "when the claim is over", polls(time.Hour), 0, 0)
	})
}

func TestThePaceGrowsUntilSomethingMoves(t *testing.T) {
	polled(t, seesNothing, func(p *engine.Poller, _ chan<- struct{}, polls func(time.Duration) int) {
		c := waits(p.Claims, "job", 1, 1)
		between(t, "the first 40 ms", polls(40*time.Millisecond), 8, 12)
		between(t, "up to 400 ms", polls(360*time.Millisecond), 17, 28)
		polls(time.Minute)
		between(t, "each minute after that", polls(time.Minute), 213, 240)
		p.Claims.Acquired(c, time.Now(), &driver.HeldError{Position: 1, Fence: 1})
		between(t, "when its place was kept", polls(time.Second), 3, 4)
		p.Claims.Compare([]engine.Claim{{Token: c.Token}}, &locktable.Entry{Fence: 2, Queue: []locktable.Waiter{{ClaimInfo: locktable.ClaimInfo{Token: c.Token}}}}, time.Now())
		polls(slow + slow/8)
		between(t, "after another grant", polls(time.Second), 10, 30)
	})
}

func TestAClaimNearerToTheHeadIsPolledForSooner(t *testing.T) {
	polled(t, seesNothing, func(p *engine.Poller, _ chan<- struct{}, polls func(time.Duration) int) {
		c := waits(p.Claims, "job", 10, 1)
		between(t, "the tenth", polls(30*time.Millisecond), 0, 0)
		p.Claims.Acquired(c, time.Now(), &driver.HeldError{Position: 1, Fence: 10})
		between(t, "the first", polls(20*time.Millisecond), 3, 6)
		p.Claims.Drop(c.Token)
		waits(p.Claims, "job", 10, 1)
		polls(time.Minute)
		between(t, "the tenth, while nothing happens", polls(time.Minute), 53, 60)
	})
}

func TestLossesArePolledForWhileALeaseIsHeld(t *testing.T) {
	polled(t, seesNothing, func(p *engine.Poller, _ chan<- struct{}, polls func(time.Duration) int) {
		c := &driver.Claim{Name: "job", Token: driver.NewToken(), TTL: 10 * time.Second}
		p.Claims.Acquired(c, time.Now(), nil)
		between(t, "while it holds", polls(5*time.Second), 9, 11)
		p.Claims.Renewed([]driver.LeaseRef{{Name: "job", Token: c.Token, TTL: 10 * time.Second}}, time.Now(), []error{nil})
		between(t, "after a renewal", polls(9*time.Second), 17, 19)
		between(t, "after it has lapsed", polls(time.Hour), 1, 4)
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
	polled(t, poll, func(p *engine.Poller, _ chan<- struct{}, polls func(time.Duration) int) {
		waits(p.Claims, "job", 1, 1)
		down.Store(true)
		between(t, "the first second", polls(time.Second), 5, 12)
		polls(10 * time.Second)
		between(t, "each minute after that", polls(time.Minute), 40, 120)
		waits(p.Claims, "other", 1, 1)
		between(t, "when it is due sooner", polls(50*time.Millisecond), 0, 1)
		down.Store(false)
		between(t, "when it is up again", polls(3*time.Second), 5, 60)
	})
}

func TestAPollThatHangsIsCancelled(t *testing.T) {
	ended := 0
	poll := func(ctx context.Context) error {
		<-ctx.Done()
		ended++
		return ctx.Err()
	}
	polled(t, poll, func(p *engine.Poller, _ chan<- struct{}, polls func(time.Duration) int) {
		waits(p.Claims, "job", 1, 1)
		if n := polls(time.Minute); n < 9 || ended < n-1 {
			t.Errorf("%d polls began and %d ended", n, ended)
		}
	})
}

func TestPollNowMakesAPollDueAtOnce(t *testing.T) {
	polled(t, seesNothing, func(p *engine.Poller, call chan<- struct{}, polls func(time.Duration) int) {
		go func() { time.Sleep(time.Millisecond); call <- struct{}{} }()
		between(t, "without claims", polls(time.Second), 1, 1)
		waits(p.Claims, "job", 1, 1)
		polls(time.Hour)
		go func() { time.Sleep(time.Millisecond); call <- struct{}{} }()
		between(t, "with one that waits", polls(slow-quick), 1, 2)
	})
}
