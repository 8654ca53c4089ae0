package redisscript

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

var (
	tracked   = driver.Claim{Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Hour}
	heldReply = WatchReply{State: string(slices.Concat([]byte{storedVersion, 1}, make([]byte, 44), tracked.Token[:]))}
)

// track tracks a lease while f runs, and returns the number of signals to its holder.
func track(t *testing.T, answer func(*tracker) WatchReply, f func(*tracker)) (signals int) {
	var w *tracker
	var listeners driver.Listeners
	listeners.Listen(func(driver.Signal) { signals++ })
	w = newTracker(func(context.Context, []string) []WatchReply { return []WatchReply{answer(w)} }, "pawl:", &listeners)
	ctx, end := context.WithCancel(t.Context())
	w.addClaim(&tracked)
	w.recordHeld(tracked.Token, tracked.TTL)
	go func() { f(w); end() }()
	w.run(ctx)
	return signals
}

// The server evicts the name after it has read the name for the arming, but before its
// answer arrives. Its memory is then full, so it answers the next arming with an error.
func TestAChangeThatOvertakesTheAnswerOfAnArmingIsReported(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		armed := 0
		signals := track(t, func(w *tracker) WatchReply {
			if armed++; armed > 1 {
				return WatchReply{Err: errors.New("OOM")}
			}
			w.changed(tracked.Name)
			return heldReply
		}, func(*tracker) { time.Sleep(time.Minute) })
		if armed < 2 || signals != 1 {
			t.Errorf("armed %d times, and %d signals, want one", armed, signals)
		}
	})
}

// A renewal arms the name, too. The timer for an earlier change then does nothing.
func TestTheRateOfArmingIsLimited(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		armed := 0
		track(t, func(*tracker) WatchReply { armed++; return heldReply }, func(w *tracker) {
			for i := range 6000 { // a minute
				if time.Sleep(10 * time.Millisecond); i%100 == 0 {
					w.recordHeld(tracked.Token, tracked.TTL) // after a renewal
				}
				w.changed(tracked.Name)
			}
		})
		if armed < 120 || armed > 120+60 {
			t.Errorf("armed %d times in a minute, with 60 renewals", armed)
		}
	})
}
