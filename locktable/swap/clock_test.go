package swap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// serverAt is a server's clock that stood at 1 000 s when ours was at zero.
const serverAt = locktable.Instant(1_000_000_000)

var zero = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func learned(trip time.Duration) *swap.Clock {
	c := &swap.Clock{}
	c.Learn(serverAt, zero.Add(-trip), zero)
	return c
}

func window(t *testing.T, c *swap.Clock, after time.Duration) swap.Window {
	t.Helper()
	w, ok := c.Window(zero.Add(after))
	if !ok {
		t.Fatalf("the time is not known %v after it was learned", after)
	}
	return w
}

// begins wants a window that begins at this time.
func begins(t *testing.T, c *swap.Clock, after time.Duration, want locktable.Instant) {
	t.Helper()
	if w := window(t, c, after); w.From != want {
		t.Errorf("%v later it begins at %d, want %d", after, w.From, want)
	}
}

// isWide wants a window of this width.
func isWide(t *testing.T, c *swap.Clock, after, want time.Duration) {
	t.Helper()
	if w := window(t, c, after); w.From.Until(w.To) != want {
		t.Errorf("%v later it is %v wide, want %v", after, w.From.Until(w.To), want)
	}
}

// unknown wants the time not to be known.
func unknown(t *testing.T, c *swap.Clock, after time.Duration) {
	t.Helper()
	if w, ok := c.Window(zero.Add(after)); ok {
		t.Errorf("%v later the window is %+v; want none", after, w)
	}
}

// The server's clock may run slower than ours, by a thousandth: the window begins no
// later than it can be. A known time grows old.
func TestAWindowBeginsAtALowerBound(t *testing.T) {
	unknown(t, new(swap.Clock), 0)
	c := learned(time.Millisecond)
	begins(t, c, 0, serverAt)
	begins(t, c, 10*time.Second, serverAt+10_000_000-10_000)
	window(t, c, 29*time.Second)
	unknown(t, c, 31*time.Second)
}

func TestAWindowHasRoomForSlowAnswers(t *testing.T) {
	isWide(t, learned(time.Millisecond), 0, 50*time.Millisecond)
	isWide(t, learned(100*time.Millisecond), 0, 400*time.Millisecond)
}

// A server that states 1 000 s, for a whole second, may still state it half a second
// later. Then a swap may be stored at 1 000 s, 1 001 s or, if the first answer came at
// the end of that second, 1 002 s.
func TestAWindowBeginsWithATick(t *testing.T) {
	c := &swap.Clock{Tick: time.Second}
	c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	c.Learn(serverAt, zero.Add(499*time.Millisecond), zero.Add(500*time.Millisecond))
	if w := window(t, c, 900*time.Millisecond); w.From != serverAt || w.To < serverAt+2_000_000 {
		t.Errorf("900 ms later it is from %d to %d, want it from %d to %d or later", w.From, w.To, serverAt, serverAt+2_000_000)
	}
	begins(t, c, 1100*time.Millisecond, serverAt+1_000_000) // what was learned last said no more
	c.Learn(serverAt-2_000_000, zero.Add(1199*time.Millisecond), zero.Add(1200*time.Millisecond))
	begins(t, c, 1200*time.Millisecond, serverAt-2_000_000) // it was set back
}

// A window that is never wide enough grows to what the store says that a lease may last
// longer.
func TestAWindowIsNoWiderThanWidest(t *testing.T) {
	for _, tick := range []time.Duration{0, time.Second} {
		c := &swap.Clock{Tick: tick}
		var last time.Duration
		for range 20 {
			c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
			w := window(t, c, 0)
			last = w.From.Until(w.To)
			c.RecordOutside(w)
		}
		if want := 5*time.Second + 2*tick; last != want || c.MaxWindow() != want {
			t.Errorf("with ticks of %v it is %v wide, and MaxWindow is %v; want %v", tick, last, c.MaxWindow(), want)
		}
	}
}

// A clock that was set back, or another server's, is believed: what was known is not true
// any more.
func TestAClockLearnsWhatSaysMore(t *testing.T) {
	c := learned(40 * time.Millisecond) // it may have been 40 ms further
	c.Learn(serverAt+1_020_000, zero.Add(999*time.Millisecond), zero.Add(time.Second))
	begins(t, c, time.Second, serverAt+1_020_000)
	c.Learn(serverAt+1_010_000, zero.Add(900*time.Millisecond), zero.Add(time.Second)) // a slow answer says less
	begins(t, c, time.Second, serverAt+1_020_000)
	c.Learn(serverAt-60_000_000, zero.Add(time.Second), zero.Add(1001*time.Millisecond))
	begins(t, c, 1001*time.Millisecond, serverAt-60_000_000)
}

func TestALateSwapAsksForTheTimeAndGetsMoreRoom(t *testing.T) {
	c := learned(time.Millisecond)
	for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		c.RecordOutside(window(t, c, 0))
		unknown(t, c, 0)
		c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
		isWide(t, c, 0, want)
	}
	c.RecordInside(window(t, c, 0))
	c.RecordInside(window(t, c, 0))
	isWide(t, c, 0, 50*time.Millisecond)
}

// Wide windows would keep the names of dead holders for long.
func TestNoWindowIsWiderThanTheWidest(t *testing.T) {
	c := learned(3 * time.Second)
	for range 3 {
		isWide(t, c, 0, 5*time.Second)
		c.RecordOutside(window(t, c, 0))
		c.Learn(serverAt, zero.Add(-3*time.Second), zero)
	}
}

// A hundred swaps that one stall made late say the same as one.
func TestOneStallMakesAWindowWiderOnce(t *testing.T) {
	c := learned(time.Millisecond)
	w := window(t, c, 0)
	for range 50 {
		c.RecordOutside(w)
	}
	c.Learn(serverAt+1_000_000, zero.Add(999*time.Millisecond), zero.Add(time.Second))
	for range 50 { // these swaps learn their results when the time is known again
		c.RecordOutside(w)
	}
	isWide(t, c, time.Second, 100*time.Millisecond)
	c.RecordInside(swap.Window{From: w.From, To: w.From.Add(400 * time.Millisecond)}) // that says nothing of 100ms
	isWide(t, c, time.Second, 100*time.Millisecond)
	c.RecordInside(w)
	isWide(t, c, time.Second, 50*time.Millisecond)
}

// A swap whose caller had less time than a window has says nothing of the width, and of
// the time all the same.
func TestALateSwapThatHadNoTimeMakesNoWindowWider(t *testing.T) {
	c := learned(time.Millisecond)
	w := window(t, c, 0)
	w.To = w.From.Add(10 * time.Millisecond)
	c.RecordOutside(w)
	unknown(t, c, 0)
	c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	isWide(t, c, 0, 50*time.Millisecond)
}

// Between the answer and the window for which it was asked, another goroutine may find
// that it was late.
func TestTheTimeIsAskedForUntilItIsKnown(t *testing.T) {
	var c swap.Clock
	asked := 0
	w, err := c.Ask(t.Context(), func(context.Context) error {
		now := time.Now()
		c.Learn(serverAt, now.Add(-time.Millisecond), now)
		if asked++; asked < 3 {
			seen, _ := c.Window(now)
			c.RecordOutside(seen)
		}
		return nil
	})
	if err != nil || w.From < serverAt || asked != 3 {
		t.Errorf("%+v, %v after it was asked %d times; want the time, after 3", w, err, asked)
	}
	none := errors.New("no answer")
	c.Forget()
	if w, err := c.Ask(t.Context(), func(context.Context) error { return none }); !errors.Is(err, none) {
		t.Errorf("%+v, %v; want the error of who asked", w, err)
	}
}
