package optimistic_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// serverAt is a server's clock that stood at 1 000 s when ours was at zero.
const serverAt = locktable.Instant(1_000_000_000)

var zero = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func learned(trip time.Duration) *optimistic.Clock {
	c := &optimistic.Clock{}
	c.Learn(serverAt, zero.Add(-trip), zero)
	return c
}

func window(t *testing.T, c *optimistic.Clock, after time.Duration) optimistic.Window {
	t.Helper()
	w, ok := c.Window(zero.Add(after))
	if !ok {
		t.Fatalf("the time is not known %v after it was learned", after)
	}
	return w
}

func TestAClockThatKnowsNothingHasNoWindow(t *testing.T) {
	var c optimistic.Clock
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
	for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
		c.Late()
		if w, ok := c.Window(zero); ok {
			t.Fatalf("%+v, though the last swap was late", w)
		}
		c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
		if w := window(t, c, 0); w.From.Until(w.To) != want {
			t.Errorf("it is %v wide, want %v", w.From.Until(w.To), want)
		}
	}
	c.InTime()
	c.InTime()
	if w := window(t, c, 0); w.From.Until(w.To) != 50*time.Millisecond {
		t.Errorf("it is %v wide after two that were in time", w.From.Until(w.To))
	}
	for range 20 {
		c.Late()
	}
	c.Learn(serverAt, zero.Add(-time.Millisecond), zero)
	if w := window(t, c, 0); w.From.Until(w.To) != 5*time.Second {
		t.Errorf("it is %v wide after twenty that were late, want 5s", w.From.Until(w.To))
	}
	c.Forget()
	if w, ok := c.Window(zero); ok {
		t.Errorf("%+v, of another server", w)
	}
}
