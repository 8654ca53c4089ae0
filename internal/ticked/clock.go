// Package ticked is for stores whose server neither compares a time in a swap nor stamps
// a value, but can compare a second key. The clients of such a store keep a clock in that
// key: each write of the key is a [Tick], and between two ticks each client reads the
// clock by its own monotonic clock. docs/internals/etcd-clock.md says why no lease ends
// early.
//
// The store passes each tick that it receives to [Clock.Learn]. A step gets its window
// from [Clock.Window], and takes effect under the tick of [Clock.ForSteps]: the request
// compares the key, and writes another tick if it has to. [Clock.Run] writes all other
// ticks.
package ticked

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

const (
	// Steps take effect only under an active tick. MaxAdvance is the largest advance of
	// the clock from an active tick to the next tick. maxReceiverSkew is the largest lead
	// of a client's reading over the tick that the client has just received. Each lease
	// lasts longer by both. With smaller values the clock would lose time whenever a tick
	// takes longer than maxReceiverSkew to arrive.
	MaxAdvance      = 250 * time.Millisecond
	maxReceiverSkew = 100 * time.Millisecond

	// tickInterval is the time between two ticks while the clock is in use. If another
	// client has to write the next tick, this takes less than MaxAdvance, see due, so the
	// clock loses no time.
	tickInterval = 150 * time.Millisecond

	// piggybackDelay is the delay after which Run writes a due tick. Meanwhile a step can
	// write the tick in its own request.
	piggybackDelay = 20 * time.Millisecond

	// IdleAdvance is the largest advance of the clock from an inactive tick to the next.
	IdleAdvance = time.Hour

	// idleAfter is the time without a step after which a client lets the clock idle.
	idleAfter = 500 * time.Millisecond

	// PeerTimeout is the time for which a newly opened client waits for a tick of another
	// client.
	PeerTimeout = 150 * time.Millisecond

	// idleTickInterval is the time between two ticks while no client uses the clock.
	// longIdleTickInterval replaces it once no earlier request can be under way.
	idleTickInterval     = time.Second
	longIdleTickInterval = 10 * time.Second

	// If round trips take slowRoundTrip or longer, most requests of a client arrive under
	// a later tick than the client has received. maxWindow is the largest width of a
	// window, see widthLocked.
	slowRoundTrip = 50 * time.Millisecond
	maxWindow     = 2 * time.Second
)

// A Tick is the content of the clock's key: a time, and the room, which is the largest
// advance to the next tick.
type Tick struct {
	Instant   locktable.Instant
	Room      time.Duration
	Value     string    // the text in the key, different for each tick
	id        string    // the unique part of Value
	oldID     string    // the id of the previous tick
	Rev       int64     // the revision of the key
	localTime time.Time // when this client's reading was equal to the tick, see Learn
	IsOwn     bool      // this client has written the tick
	WasRead   bool      // this client has read the tick, so it does not know the age of the tick
}

// IsActive reports whether steps can take effect under the tick.
func (t Tick) IsActive() bool { return t.Room <= MaxAdvance }

// newTick makes the tick after old. Its id is unique, because revisions repeat if an
// operator restores a snapshot, and times may repeat, too.
func newTick(old Tick, instant locktable.Instant, room time.Duration) Tick {
	t := Tick{Instant: instant, Room: room, id: rand.Text()[:8], oldID: old.id}
	t.Value = fmt.Sprintf("%s %d %s %s", Prefix(instant, room), room.Microseconds(), t.id, cmp.Or(t.oldID, "-"))
	return t
}

// Prefix returns the beginning of a tick's text. Active ticks sort by time, and before
// all inactive ticks.
func Prefix(instant locktable.Instant, room time.Duration) string {
	if room <= MaxAdvance {
		return fmt.Sprintf("a%020d", instant)
	}
	return fmt.Sprintf("z%020d", instant)
}

// Parse reads the text of a tick.
func Parse(value string, rev int64) (Tick, error) {
	t := Tick{Value: value, Rev: rev}
	if fields := strings.Fields(value); len(fields) == 4 {
		instant, err1 := strconv.ParseInt(fields[0][1:], 10, 64)
		room, err2 := strconv.ParseInt(fields[1], 10, 64)
		t.Instant, t.Room, t.id, t.oldID = locktable.Instant(instant), time.Duration(room)*time.Microsecond, fields[2], fields[3]
		if err1 == nil && err2 == nil && instant > 0 && room > 0 && t.Room <= IdleAdvance && fields[0] == Prefix(t.Instant, t.Room) {
			return t, nil
		}
	}
	return t, fmt.Errorf("the clock's key has the value %.40q, which is no time", value)
}

// ReadingAt returns this client's reading of the clock: the time of the tick plus the
// time since t.localTime, up to t.Room.
func (t Tick) ReadingAt(now time.Time) locktable.Instant {
	passed := min(t.Room, now.Sub(t.localTime))
	return t.Instant + max(1, locktable.Instant(passed/time.Microsecond))
}

// A Clock is a client's view of the clock that all clients share. The client computes its
// readings and its ticks from this view.
type Clock struct {
	changed chan struct{} // has a value if Run has to call due again

	mu            sync.Mutex // protects the fields below
	lastTick      Tick
	known         bool          // this client knows lastTick
	lastAttempt   string        // the text of the last tick that this client tried to write
	usedAt        time.Time     // when this client last called Window
	activeAt      time.Time     // when this client last received an active tick
	tickRequested time.Time     // when another client asked for a tick; zero after the next tick
	nextTick      chan struct{} // closed at the next tick
	jitter        float64       // a random number, 0 to 1, so that clients write a due tick at different times
	roundTrip     time.Duration // the average round-trip time
}

// New makes a Clock that knows no tick.
func New() *Clock {
	return &Clock{changed: make(chan struct{}, 1), nextTick: make(chan struct{}), jitter: mathrand.Float64()}
}

// Window returns the window of a step that is computed now. It begins with this client's
// reading. A lease of the step ends one TTL after the window. So it lasts its whole TTL
// even if the step takes effect under the latest possible tick, see Latest: the next tick
// is at most MaxAdvance later, and a reading leads a tick by at most maxReceiverSkew.
func (c *Clock) Window(now time.Time) (w swap.Window, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return w, false
	}
	c.usedAt = now
	from := c.lastTick.ReadingAt(now)
	return swap.Window{From: from, To: from.Add(c.widthLocked() + MaxAdvance + maxReceiverSkew), WallClock: locktable.At(now)}, true
}

// Latest returns the time of the latest tick under which a step may take effect.
func Latest(w swap.Window) locktable.Instant {
	return max(w.From, w.To.Add(-MaxAdvance-maxReceiverSkew))
}

// widthLocked returns the longest time after this client's reading at which a step may
// take effect. It is 0 unless the client is so far away that most of its requests arrive
// under a later tick than it has received.
func (c *Clock) widthLocked() time.Duration {
	if c.roundTrip < slowRoundTrip {
		return 0
	}
	return min(2*c.roundTrip, maxWindow)
}

// RecordRoundTrip updates the average round-trip time.
func (c *Clock) RecordRoundTrip(trip time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roundTrip = cmp.Or(c.roundTrip, trip)
	c.roundTrip += (trip - c.roundTrip) / 4
}

// ForSteps returns the tick under which steps with times between first and last take
// effect. If addTick is true, the request must also write a new tick. If ok is false, the
// last tick is after first, or the reading is before last. In the latter case, another
// client with a slower clock has written a tick: a lease that a step saw as expired may
// still last.
//
// To save a request, the client that wrote the last tick adds a due tick to a step.
func (c *Clock) ForSteps(first, last locktable.Instant, now time.Time) (t Tick, addTick, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || first < c.lastTick.Instant || last > c.lastTick.ReadingAt(now) {
		return t, false, false
	}
	fitsNextTick := first < c.lastTick.Instant.Add(c.lastTick.Room)
	if width := c.widthLocked(); width > 0 { // the next tick may already have been sent
		fitsNextTick = fitsNextTick || now.Sub(c.lastTick.localTime) < MaxAdvance+width
	}
	canCarrySteps := c.lastTick.IsActive() && fitsNextTick
	due := c.lastTick.IsOwn && now.Sub(c.lastTick.localTime) >= tickInterval
	return c.lastTick, !canCarrySteps || due, true
}

// Learn takes a tick that this client has just received. The reading continues, but Learn
// limits it to the time from the tick to maxReceiverSkew after the tick. If this client
// has missed the tick before t, Learn sets the reading to t. The writer of t may already
// have been maxReceiverSkew ahead of the missed tick, and the two leads must not add up.
func (c *Clock) Learn(t Tick) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && t.Rev <= c.lastTick.Rev {
		return
	}
	now := time.Now()
	if t.localTime = now; c.known && t.oldID == c.lastTick.id {
		t.localTime = now.Add(-min(maxReceiverSkew, max(0, t.Instant.Until(c.lastTick.Instant)+now.Sub(c.lastTick.localTime))))
	}
	t.IsOwn = t.Value == c.lastAttempt
	c.lastTick, c.known = t, true
	if t.IsActive() {
		c.activeAt = now
	}
	c.tickRequested = time.Time{}
	close(c.nextTick)
	c.nextTick = make(chan struct{})
	c.wakeLoop()
}

// Next makes the tick that this client writes after old.
func (c *Clock) Next(old Tick, instant locktable.Instant, room time.Duration) Tick {
	t := newTick(old, instant, room)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastAttempt = t.Value
	return t
}

// wakeLoop makes Run call due again.
func (c *Clock) wakeLoop() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// NoteRequest records that another client asks for a tick, if this client knows the age
// of the last tick.
func (c *Clock) NoteRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && !c.lastTick.WasRead {
		c.tickRequested = time.Now()
		c.wakeLoop()
	}
}

// Idle returns a channel that is closed at the next tick, and reports whether the clock
// is idle.
func (c *Clock) Idle() (next <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextTick, c.known && !c.lastTick.IsActive()
}

// RaiseAge records that the tick with the revision rev is at least as old as age. A
// later call with the same age has no effect.
func (c *Clock) RaiseAge(rev int64, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := time.Now().Add(-age); c.known && c.lastTick.Rev == rev && at.Before(c.lastTick.localTime) {
		c.lastTick.localTime = at
	}
}

// Invalidate makes this client read the clock again, for example because another cluster
// may have answered.
func (c *Clock) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}

// Current returns the last tick, and whether this client knows it.
func (c *Clock) Current() (Tick, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastTick, c.known
}

// due returns when this client writes the next tick if no other client does, and the room
// of that tick. The client that wrote the last tick is due first, and the others a little
// later.
func (c *Clock) due() (at time.Time, room time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return at, 0, false
	}
	after := tickInterval
	if !c.lastTick.IsActive() {
		after = idleTickInterval
		if time.Since(c.activeAt) > driver.MaxRequest {
			after = longIdleTickInterval
		}
	}
	switch {
	case !c.lastTick.IsOwn:
		after += after/3 + time.Duration(c.jitter*float64(after)*0.3)
	case c.lastTick.IsActive():
		after += piggybackDelay
	}
	at, room = c.lastTick.localTime.Add(after), IdleAdvance
	if !c.tickRequested.IsZero() {
		at = c.tickRequested
		if !c.lastTick.IsOwn {
			at = at.Add(PeerTimeout/20 + time.Duration(c.jitter*float64(PeerTimeout/5)))
		}
	}
	if time.Since(c.usedAt) < idleAfter {
		room = MaxAdvance // the clock is in use
	}
	return at, room, true
}

// Run writes the due ticks until ctx ends. read reads the clock's key. write writes the
// next tick with a room, unless another client has written one.
func (c *Clock) Run(ctx context.Context, read func(context.Context) error, write func(ctx context.Context, room time.Duration) error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		case <-timer.C:
		}
		at, room, ok := c.due()
		if !ok {
			if read(ctx) != nil {
				timer.Reset(idleTickInterval)
			}
			continue
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			continue
		}
		if write(ctx, room) != nil {
			timer.Reset(idleTickInterval)
		}
	}
}
