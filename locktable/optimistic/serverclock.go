package optimistic

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Clock is what a client knows of the clock of its server, from the times that the
// server has said: a lower bound of where it stands now, and a window for what is sent
// now. The zero value knows nothing.
type Clock struct {
	// Tick is for a server that says its time in whole ticks, such as seconds. Its clock
	// stands still for so long: windows begin with a tick, and the store is a Lingerer.
	// Its Properties say Outlasts: Widest.
	Tick time.Duration

	mu    sync.Mutex        // protects what follows
	known engine.ServerTime // zero if the server has to be asked
	trip  time.Duration     // of the answer that said it
	wider int               // how often the window was doubled since it was wide enough
}

const (
	// stale is after how long the server is asked again: by then a thousandth of it may
	// be off.
	stale = 30 * time.Second

	// narrowest is the width of a window at the least. What begins lasts as much longer.
	narrowest = 50 * time.Millisecond
	widest    = 5 * time.Second
)

// Window is where the server's clock stands now, and how far it may go until what is sent
// now has arrived. It is not ok if the server has to be asked for its time first.
func (c *Clock) Window(now time.Time) (w Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.known.At) > stale {
		return Window{}, false
	}
	from := c.known.By(now)
	if tick := locktable.Instant(c.Tick / time.Microsecond); tick > 0 {
		from -= from % tick
	}
	return Window{From: from, To: from.Add(c.width())}, true
}

// width is how wide a window is now. What is known may lag by a tick, and when the window
// begins, another one may have passed in part.
func (c *Clock) width() time.Duration {
	width := min(max(narrowest, 4*c.trip), widest)
	for range c.wider {
		width = min(2*width, widest)
	}
	return width + 2*c.Tick
}

// Widest is how wide a window can be: so much longer may a lease last that begins in it.
func (c *Clock) Widest() time.Duration { return widest + 2*c.Tick }

// Ask is Window where the server may be asked: ask does that, and lets the clock Learn
// what it says. It is asked again as long as somebody else finds meanwhile that what is
// known is wrong.
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

// Learn takes a time that the server said in an answer that was received now, to a
// request that was sent then.
func (c *Clock) Learn(is locktable.Instant, sent, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.Outdated(is, c.Tick, sent, now) {
		c.known, c.trip = engine.ServerTime{At: now, Is: is}, now.Sub(sent)
	}
}

// Late notes that something took effect, or would have, outside of its window. The next
// has more room if it is no wider than this one was: of many that are late at once, for
// one reason, only the first makes it wider. The server is asked for its time before it,
// unless it has said it since.
func (c *Clock) Late(w Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if width := c.width(); width < c.Widest() && w.width() >= width-width/8 {
		c.wider++
	}
	if w.From >= c.known.Is {
		c.known = engine.ServerTime{}
	}
}

// InTime notes that a window was wide enough. If windows are as wide now, or wider, the
// next is narrower.
func (c *Clock) InTime(w Window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if width := c.width(); w.width() <= width+width/8 {
		c.wider = max(0, c.wider-1)
	}
}

// width is how wide a window is. A store may have rounded it, so that one as wide as
// another is so give or take an eighth.
func (w Window) width() time.Duration { return w.From.Until(w.To) }

// Forget is for when the next answer may be another server's.
func (c *Clock) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = engine.ServerTime{}
}
