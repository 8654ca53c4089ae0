package swap

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Clock is a client's estimate of its server's clock, from the times that the server has
// sent: a lower bound of the present time, and a window for a request that is sent now.
// The zero value knows no time.
type Clock struct {
	// Tick is the resolution of the server's clock if it is coarse, such as a second.
	// Such a clock stands still for a Tick at a time. So windows begin with a tick, and
	// the store must be a DelayedWriter. The store's MaxOverrun must be MaxWindow.
	Tick time.Duration

	mu        sync.Mutex        // protects the fields below
	known     engine.ServerTime // zero if the client has to ask the server
	roundTrip time.Duration     // the round-trip time of the request that set known
	doublings int               // doublings of the width: RecordOutside adds 1, RecordInside subtracts 1
}

const (
	// askServerAfter is the age of the known time at which the client asks again. By then
	// the clocks may have drifted apart by a thousandth of that age.
	askServerAfter = 30 * time.Second

	// minWindow is the least width of a window. A lease lasts longer by the width.
	minWindow = 50 * time.Millisecond
	maxWindow = 5 * time.Second
)

// Window returns the window of a request that is sent now: the server's present time, and
// the latest time at which the request should arrive. ok is false if the client has to
// ask the server for its time first.
func (c *Clock) Window(now time.Time) (w Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.known.Client) > askServerAfter {
		return Window{}, false
	}
	from := c.known.LowerBound(now)
	if tick := locktable.Instant(c.Tick / time.Microsecond); tick > 0 {
		from -= from % tick
	}
	return Window{From: from, To: from.Add(c.width())}, true
}

// width returns the width of the next window. It includes two ticks: the known time may
// lag by one, and From is rounded down by up to one.
func (c *Clock) width() time.Duration {
	width := min(max(minWindow, 4*c.roundTrip), maxWindow)
	for range c.doublings {
		width = min(2*width, maxWindow)
	}
	return width + 2*c.Tick
}

// MaxWindow returns the greatest width of a window: a lease may last longer by that.
func (c *Clock) MaxWindow() time.Duration { return maxWindow + 2*c.Tick }

// Ask returns the result of Window. If the client has to ask the server, Ask first calls
// ask, which sends the request and calls Learn with the answer. Ask calls ask again if a
// concurrent swap finds out that the known time is wrong.
func (c *Clock) Ask(ctx context.Context, ask func(ctx context.Context) error) (Window, error) {
	for {
		if w, ok := c.Window(time.Now()); ok {
			return w, nil
		}
		if err := ask(ctx); err != nil {
			return Window{}, err
		}
	}
}

// Learn updates the known time with the server's time in an answer. The request was sent
// at sent, and the answer received at now.
func (c *Clock) Learn(serverTime locktable.Instant, sent, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.Outdated(serverTime, c.Tick, sent, now) {
		c.known, c.roundTrip = engine.ServerTime{Client: now, Server: serverTime}, now.Sub(sent)
	}
}

// RecordOutside records that the store's clock was outside of w, the window of a swap. It
// makes the next window wider, unless that is already wider than w. So if many swaps are
// late for one reason, only the first makes it wider. RecordOutside also drops the known
// time, unless that is newer than w.
func (c *Clock) RecordOutside(w Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if width := c.width(); width < c.MaxWindow() && w.width() >= width-width/8 {
		c.doublings++
	}
	if w.From >= c.known.Server {
		c.known = engine.ServerTime{}
	}
}

// RecordInside records that w was wide enough. It makes the next window narrower, unless
// that is already narrower than w.
func (c *Clock) RecordInside(w Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if width := c.width(); w.width() <= width+width/8 {
		c.doublings = max(0, c.doublings-1)
	}
}

// width returns the width of a window. A store may have rounded the window, so callers
// compare widths with a tolerance of an eighth.
func (w Window) width() time.Duration { return w.From.Until(w.To) }

// Forget drops the known time. A store calls it when another server may answer next.
func (c *Clock) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = engine.ServerTime{}
}
