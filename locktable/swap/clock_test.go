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

func TestAClockThatKnowsNothingHasNoWindow(t *testing.T) {
	var c swap.Clock
	if w, ok := c.Window(zero); ok {
		t.Errorf("%+v", w)
	}
}

// The server's clock may run slower than ours, by a thousandth: the window begins no
// later than it can be.
func TestAWindowBeginsAtALowerBound(t *testing.T) {
	c := learned(time.Millisecond)
	if w := window(t, c, 0); w.From != serverAt {
		t.Errorf("it begins at %d, want %d", w.From, serverAt)
	}
	if w, want := window(t, c, 10*time.Second), serverAt+10_000_000-10_000; w.From != want {
		t.Errorf("10 s later it begins at %d, want %d", w.From, want)
	}
}

func TestAWindowHasRoomForSlowAnswers(t *testing.T) {
	near, far := window(t, learned(time.Millisecond), 0), window(t, learned(100*time.Millisecond), 0)
	if width := near.From.Until(near.To); width != 50*time.Millisecond {
		t.Errorf("it is %v wide near the server, want 50ms", width)
	}
	if width := far.From.Until(far.To); width != 400*time.Millisecond {
		t.Errorf("it is %v wide where an answer takes 100ms, want 400ms", width)
	}
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
	if w := window(t, c, 1100*time.Millisecond); w.From != serverAt+1_000_000 {
		t.Errorf("1.1 s later it begins at %d, want %d: what was learned last said no more", w.From, serverAt+1_000_000)
	}
	c.Learn(serverAt-2_000_000, zero.Add(1199*time.Millisecond), zero.Add(1200*time.Millisecond))
	if w := window(t, c, 1200*time.Millisecond); w.From != serverAt-2_000_000 {
		t.Errorf("set back, it begins at %d, want %d", w.From, serverAt-2_000_000)
	}
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
			c.OutsideWindow(w)
		}
		if want := 5*time.Second + 2*tick; last != want || c.MaxWindow() != want {
			t.Errorf("with ticks of %v it is %v wide, and MaxWindow is %v; want %v", tick, last, c.MaxWindow(), want)
		}
	}
}

func TestWhatIsKnownGrowsOld(t *testing.T) {
	c := learned(time.Millisecond)
	window(t, c, 29*time.Second)
	if w, ok := c.Window(zero.Add(31 * time.Second)); ok {
		t.Errorf("%+v, half a minute after it was learned", w)
	}
}

func TestAClockLearnsWhatSaysMore(t *testing.T) {
	c := learned(40 * time.Millisecond) // it may have been 40 ms further
	c.Learn(serverAt+1_020_000, zero.Add(999*time.Millisecond), zero.Add(time.Second))
	if w := window(t, c, time.Second); w.From != serverAt+1_020_000 {
		t.Errorf("it begins at %d, want %d", w.From, serverAt+1_020_000)
	}
	c.Learn(serverAt+1_010_000, zero.Add(900*time.Millisecond), zero.Add(time.Second)) // a slow answer says less
	if w := window(t, c, time.Second); w.From != serverAt+1_020_000 {
		t.Errorf("a slow answer has set it to %d", w.From)
	}
}

// A clock that was set back, or another server's: what was known is not true any more.
func TestAClockThatWasSetBackIsBelieved(t *testing.T) {
	c := learned(time.Millisecond)
	c.Learn(serverAt-60_000_000, zero.Add(time.Second), zero.Add(1001*time.Millisecond))
	if w := window(t, c, 1001*time.Millisecond); w.From != serverAt-60_000_000 {
		t.Errorf("it begins at %d, want %d", w.From, serverAt-60_000_000)
	}
}

func TestALateSwapAsksForTheTimeAndGetsMoreRoom(t *testing.T) {
	c := learned(time.Millisecond)
	late := func() {
		t.Helper()
		c.OutsideWindow(window(t, c, 0))
		if w, ok := c.Window(zero); ok {
			t.Fatalf("%+v, though the last swap was late", w)
		}
		c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	}
	for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		late()
		if w := window(t, c, 0); w.From.Until(w.To) != want {
			t.Errorf("it is %v wide, want %v", w.From.Until(w.To), want)
		}
	}
	c.InsideWindow(window(t, c, 0))
	c.InsideWindow(window(t, c, 0))
	if w := window(t, c, 0); w.From.Until(w.To) != 50*time.Millisecond {
		t.Errorf("it is %v wide after two that were in time", w.From.Until(w.To))
	}
	for range 20 {
		late()
	}
	if w := window(t, c, 0); w.From.Until(w.To) != 5*time.Second {
		t.Errorf("it is %v wide after twenty that were late, want 5s", w.From.Until(w.To))
	}
	c.Forget()
	if w, ok := c.Window(zero); ok {
		t.Errorf("%+v, of another server", w)
	}
}

// After one slow answer, windows are as narrow as before: wide ones would keep the names
// of dead holders for long.
func TestNoWindowIsWiderThanTheWidest(t *testing.T) {
	c := learned(3 * time.Second)
	for range 3 {
		w := window(t, c, 0)
		if width := w.From.Until(w.To); width != 5*time.Second {
			t.Errorf("it is %v wide, want 5s", width)
		}
		c.OutsideWindow(w)
		c.Learn(serverAt, zero.Add(-3*time.Second), zero)
	}
}

// A hundred swaps that one stall made late say the same as one.
func TestOneStallMakesAWindowWiderOnce(t *testing.T) {
	c := learned(time.Millisecond)
	w := window(t, c, 0)
	for range 50 {
		c.OutsideWindow(w)
	}
	c.Learn(serverAt+1_000_000, zero.Add(999*time.Millisecond), zero.Add(time.Second))
	for range 50 { // these swaps learn their results when the time is known again
		c.OutsideWindow(w)
	}
	if w := window(t, c, time.Second); w.From.Until(w.To) != 100*time.Millisecond {
		t.Errorf("it is %v wide, want 100ms", w.From.Until(w.To))
	}
	c.InsideWindow(swap.Window{From: w.From, To: w.From.Add(400 * time.Millisecond)}) // that says nothing of 100ms
	if w := window(t, c, time.Second); w.From.Until(w.To) != 100*time.Millisecond {
		t.Errorf("it is %v wide after a wide one was in time, want 100ms", w.From.Until(w.To))
	}
	c.InsideWindow(w)
	if w := window(t, c, time.Second); w.From.Until(w.To) != 50*time.Millisecond {
		t.Errorf("it is %v wide after one of 50ms was in time", w.From.Until(w.To))
	}
}

// A swap whose caller had less time than a window has says nothing of the width, and of
// the time all the same.
func TestALateSwapThatHadNoTimeMakesNoWindowWider(t *testing.T) {
	c := learned(time.Millisecond)
	w := window(t, c, 0)
	w.To = w.From.Add(10 * time.Millisecond)
	c.OutsideWindow(w)
	if w, ok := c.Window(zero); ok {
		t.Fatalf("%+v, though the last swap was late", w)
	}
	c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	if w := window(t, c, 0); w.From.Until(w.To) != 50*time.Millisecond {
		t.Errorf("it is %v wide, want 50ms", w.From.Until(w.To))
	}
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
			c.OutsideWindow(seen)
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
