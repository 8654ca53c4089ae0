package swap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// serverAt is the server's time, 1 000 s, when our clock shows zero.
const serverAt = locktable.Instant(1_000_000_000)

var zero = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func newClock(trip time.Duration) *swap.Clock {
	c := &swap.Clock{}
	c.Learn(serverAt, zero.Add(-trip), zero)
	return c
}

func window(t *testing.T, c *swap.Clock, after time.Duration) swap.Window {
	t.Helper()
	w, ok := c.Window(zero.Add(after))
	if !ok {
		t.Fatalf("the clock has no window %v after Learn", after)
	}
	return w
}

// wantFrom requires that the window begins at this time.
func wantFrom(t *testing.T, c *swap.Clock, after time.Duration, want locktable.Instant) {
	t.Helper()
	if w := window(t, c, after); w.From != want {
		t.Errorf("after %v the window begins at %d, want %d", after, w.From, want)
	}
}

// wantWidth requires this width of the window.
func wantWidth(t *testing.T, c *swap.Clock, after, want time.Duration) {
	t.Helper()
	if w := window(t, c, after); w.From.Until(w.To) != want {
		t.Errorf("after %v the width is %v, want %v", after, w.From.Until(w.To), want)
	}
}

// wantUnknown requires that the clock has no window.
func wantUnknown(t *testing.T, c *swap.Clock, after time.Duration) {
	t.Helper()
	if w, ok := c.Window(zero.Add(after)); ok {
		t.Errorf("after %v the window is %+v; want none", after, w)
	}
}

// The server's clock may be slower than ours by a thousandth. So the window begins at a
// lower bound, and after 30 s the client asks for the time again.
func TestAWindowBeginsAtALowerBound(t *testing.T) {
	wantUnknown(t, new(swap.Clock), 0)
	c := newClock(time.Millisecond)
	wantFrom(t, c, 0, serverAt)
	wantFrom(t, c, 10*time.Second, serverAt+10_000_000-10_000)
	window(t, c, 29*time.Second)
	wantUnknown(t, c, 31*time.Second)
}

func TestAWindowHasRoomForSlowAnswers(t *testing.T) {
	wantWidth(t, newClock(time.Millisecond), 0, 50*time.Millisecond)
	wantWidth(t, newClock(100*time.Millisecond), 0, 400*time.Millisecond)
}

// A server with ticks of a second may show 1 000 s twice, half a second apart. A swap may
// then be stored at 1 000 s, at 1 001 s or, if the first answer came at the end of the
// tick, at 1 002 s.
func TestAWindowBeginsWithATick(t *testing.T) {
	c := &swap.Clock{Tick: time.Second}
	c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	c.Learn(serverAt, zero.Add(499*time.Millisecond), zero.Add(500*time.Millisecond))
	if w := window(t, c, 900*time.Millisecond); w.From != serverAt || w.To < serverAt+2_000_000 {
		t.Errorf("after 900 ms the window is from %d to %d, want from %d to %d or later", w.From, w.To, serverAt, serverAt+2_000_000)
	}
	wantFrom(t, c, 1100*time.Millisecond, serverAt+1_000_000) // the second answer was no better
	c.Learn(serverAt-2_000_000, zero.Add(1199*time.Millisecond), zero.Add(1200*time.Millisecond))
	wantFrom(t, c, 1200*time.Millisecond, serverAt-2_000_000) // the server's clock was set back
}

// A window that is never wide enough grows up to MaxWindow, the store's MaxOverrun.
func TestAWindowGrowsUpToMaxWindow(t *testing.T) {
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
			t.Errorf("with ticks of %v the width is %v, and MaxWindow is %v; want %v", tick, last, c.MaxWindow(), want)
		}
	}
}

// If the server's clock was set back, or another server answers, the known time is
// replaced.
func TestAClockLearnsBetterAndEarlierTimes(t *testing.T) {
	c := newClock(40 * time.Millisecond) // the server's time may be 40 ms later
	c.Learn(serverAt+1_020_000, zero.Add(999*time.Millisecond), zero.Add(time.Second))
	wantFrom(t, c, time.Second, serverAt+1_020_000)
	c.Learn(serverAt+1_010_000, zero.Add(900*time.Millisecond), zero.Add(time.Second)) // a slow answer is less precise
	wantFrom(t, c, time.Second, serverAt+1_020_000)
	c.Learn(serverAt-60_000_000, zero.Add(time.Second), zero.Add(1001*time.Millisecond))
	wantFrom(t, c, 1001*time.Millisecond, serverAt-60_000_000)
}

func TestALateSwapMakesTheNextWindowWider(t *testing.T) {
	c := newClock(time.Millisecond)
	for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		c.RecordOutside(window(t, c, 0))
		wantUnknown(t, c, 0)
		c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
		wantWidth(t, c, 0, want)
	}
	c.RecordInside(window(t, c, 0))
	c.RecordInside(window(t, c, 0))
	wantWidth(t, c, 0, 50*time.Millisecond)
}

// A wide window makes leases of dead holders last longer.
func TestASlowServerHasAWindowOfMaxWindow(t *testing.T) {
	c := newClock(3 * time.Second)
	for range 3 {
		wantWidth(t, c, 0, 5*time.Second)
		c.RecordOutside(window(t, c, 0))
		c.Learn(serverAt, zero.Add(-3*time.Second), zero)
	}
}

// If one stall makes a hundred swaps late, the window grows only once.
func TestOneStallMakesAWindowWiderOnce(t *testing.T) {
	c := newClock(time.Millisecond)
	w := window(t, c, 0)
	for range 50 {
		c.RecordOutside(w)
	}
	c.Learn(serverAt+1_000_000, zero.Add(999*time.Millisecond), zero.Add(time.Second))
	for range 50 { // these swaps are reported after the time is known again
		c.RecordOutside(w)
	}
	wantWidth(t, c, time.Second, 100*time.Millisecond)
	c.RecordInside(swap.Window{From: w.From, To: w.From.Add(400 * time.Millisecond)}) // proves nothing about 100 ms
	wantWidth(t, c, time.Second, 100*time.Millisecond)
	c.RecordInside(w)
	wantWidth(t, c, time.Second, 50*time.Millisecond)
}

// A swap whose ctx was shorter than a window does not make windows wider, but drops the
// known time.
func TestALateSwapWithAShortCtxMakesNoWindowWider(t *testing.T) {
	c := newClock(time.Millisecond)
	w := window(t, c, 0)
	w.To = w.From.Add(10 * time.Millisecond)
	c.RecordOutside(w)
	wantUnknown(t, c, 0)
	c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	wantWidth(t, c, 0, 50*time.Millisecond)
}

// After the answer, another goroutine may find that its swap was late, before Ask
// computes the window.
func TestAskRepeatsUntilTheTimeIsKnown(t *testing.T) {
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
		t.Errorf("Ask: %+v, %v after %d calls of ask; want a window after 3", w, err, asked)
	}
	errNone := errors.New("no answer")
	c.Forget()
	if w, err := c.Ask(t.Context(), func(context.Context) error { return errNone }); !errors.Is(err, errNone) {
		t.Errorf("Ask: %+v, %v; want the error of ask", w, err)
	}
}
