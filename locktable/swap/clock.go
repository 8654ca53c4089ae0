package swap

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Clock is a client's estimate of its server's clock, from the times that the server has
// stated: a lower bound of its time now, and a window for a request that is sent now. The
// zero value knows nothing.
type Clock struct {
	// Tick is for a server that states its time in whole ticks, such as seconds. That
	// clock stands still for a Tick at a time. So windows begin with a tick, and the
	// store must be a DelayedWriter. The store's MaxOverrun must be Widest.
	Tick time.Duration

	mu    sync.Mutex        // protects what follows
	known engine.ServerTime // zero if the client has to ask the server
	trip  time.Duration     // how long the request took whose answer set known
	wider int               // how often to double the width: OutsideWindow adds 1, InsideWindow subtracts 1
}

const (
	// askServerAfter is the age of the known time at which the client asks again. By then
	// the clocks may differ by a thousandth of that age.
	askServerAfter = 30 * time.Second

	// minWindow is the least width of a window. A lease lasts that much longer.
	minWindow = 50 * time.Millisecond
	maxWindow = 5 * time.Second
)

// Window returns the server's time now, and the latest time on its clock at which a
// request that is sent now should arrive. ok is false if the client has to ask the server
// for its time first.
func (c *Clock) Window(now time.Time) (w Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.known.At) > askServerAfter {
		return Window{}, false
	}
	from := c.known.By(now)
	if tick := locktable.Instant(c.Tick / time.Microsecond); tick > 0 {
		from -= from % tick
	}
	return Window{From: from, To: from.Add(c.width())}, true
}

// width is the width of the next window. The known time may lag by a tick, and when the
// window begins, a part of another tick may have passed.
func (c *Clock) width() time.Duration {
	width := min(max(minWindow, 4*c.trip), maxWindow)
	for range c.wider {
		width = min(2*width, maxWindow)
	}
	return width + 2*c.Tick
}

// Widest is the greatest width of a window: a lease may last that much longer.
func (c *Clock) Widest() time.Duration { return maxWindow + 2*c.Tick }

// Ask is Window for a caller that may ask the server: the function ask sends the request,
// and calls Learn with the answer. Ask calls it again if a concurrent swap finds out that
// the known time is wrong.
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

// Learn takes the server's time from an answer. The request was sent at sent, and the
// answer received at now.
func (c *Clock) Learn(is locktable.Instant, sent, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.Outdated(is, c.Tick, sent, now) {
		c.known, c.trip = engine.ServerTime{At: now, Is: is}, now.Sub(sent)
	}
}

// OutsideWindow notes that the store's clock was not within the window of a swap. It
// makes the next window wider, unless that window is already wider than w. So of many
// swaps that are late for one reason, only the first makes it wider. Before the next
// window the client asks the server for its time, unless the server has stated it since.
func (c *Clock) OutsideWindow(w Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if width := c.width(); width < c.Widest() && w.width() >= width-width/8 {
		c.wider++
	}
	if w.From >= c.known.Is {
		c.known = engine.ServerTime{}
	}
}

// InsideWindow notes that a window was wide enough. If the next window would be as wide,
// or wider, InsideWindow makes it narrower.
func (c *Clock) InsideWindow(w Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if width := c.width(); w.width() <= width+width/8 {
		c.wider = max(0, c.wider-1)
	}
}

// width is the width of a window. A store may have rounded it, so callers compare widths
// with a tolerance of an eighth.
func (w Window) width() time.Duration { return w.From.Until(w.To) }

// Forget drops the known time, when another server may give the next answer.
func (c *Clock) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = engine.ServerTime{}
}
