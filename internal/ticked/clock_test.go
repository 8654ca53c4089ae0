package ticked

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
)

// world simulates, in virtual time, a server with a clock's key and one entry, and
// clients that read the clock.
type world struct {
	t *testing.T

	mu      sync.Mutex // protects the fields below; locked except in pauses
	random  *rand.Rand
	clients []*Clock
	last    Tick
	granted time.Time         // the real time of the last grant
	ends    locktable.Instant // the end of the lease, as stored in the entry
	grants  int
}

const leaseTTL = 400 * time.Millisecond

// pause sleeps, as a message or a goroutine takes time: mostly short, sometimes very
// long.
func (w *world) pause() {
	longest := 2 * time.Millisecond
	switch n := w.random.IntN(100); {
	case n < 3:
		longest = 4 * time.Second
	case n < 20:
		longest = 600 * time.Millisecond
	}
	took := time.Duration(w.random.Int64N(int64(longest)))
	w.mu.Unlock()
	time.Sleep(took)
	w.mu.Lock()
}

func (w *world) start(f func()) {
	go func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
	}()
}

// write stores a tick, as the server does. Each client receives it after a pause.
func (w *world) write(t Tick) Tick {
	t.Rev = w.last.Rev + 1
	w.last = t
	for _, c := range w.clients {
		w.start(func() { w.pause(); c.Learn(t) })
	}
	return t
}

// step acquires the lease if the last one has expired.
func (w *world) step(c *Clock) {
	window, _ := c.Window(time.Now())
	seen, ends := w.granted, w.ends
	w.pause() // until the request is sent
	t, addTick, ok := c.ForSteps(window.From, window.From, time.Now())
	if !ok {
		return
	}
	next := c.Next(t, window.From, MaxAdvance)
	w.pause() // until the request arrives
	tickIsValid := w.last.Value == t.Value
	if until := Latest(window); !addTick && until > window.From {
		tickIsValid = w.last.Value > Prefix(t.Instant, t.Room) && w.last.Value < Prefix(until+1, MaxAdvance)
	}
	if !tickIsValid || !w.granted.Equal(seen) {
		return
	}
	if addTick {
		next = w.write(next)
	}
	if window.From >= ends {
		if left := leaseTTL - time.Since(w.granted); left > 0 && w.grants > 0 {
			w.t.Errorf("granted %v too early", left)
		}
		w.granted, w.ends = time.Now(), window.To.Add(leaseTTL)
		w.grants++
	}
	if w.pause(); addTick {
		c.Learn(next)
	}
}

// writeTick writes a tick, as Run does.
func (w *world) writeTick(c *Clock) {
	t, _ := c.Current()
	room := MaxAdvance
	if w.random.IntN(3) == 0 {
		room = IdleAdvance
	}
	next := c.Next(t, t.ReadingAt(time.Now()), room)
	w.pause()
	if w.last.Value == t.Value {
		w.write(next)
	}
}

// A reading that advanced without a tick is at most maxReceiverSkew ahead of the next
// tick. It is not ahead of a tick if the client has missed the tick before that.
func TestAReadingLeadsOnlyTheNextTick(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		first := Tick{Instant: 1_000_000, Room: MaxAdvance, Value: "first", id: "first", Rev: 1}
		received, missed := New(), New()
		received.Learn(first)
		missed.Learn(first)
		time.Sleep(time.Second)
		second := newTick(first, first.Instant.Add(MaxAdvance), MaxAdvance)
		second.Rev = 2
		third := newTick(second, second.Instant.Add(maxReceiverSkew), MaxAdvance)
		third.Rev = 3
		received.Learn(second)
		if w, _ := received.Window(time.Now()); w.From != second.Instant.Add(maxReceiverSkew) {
			t.Errorf("%v ahead of the next tick; want maxReceiverSkew", second.Instant.Until(w.From))
		}
		missed.Learn(third)
		if w, _ := missed.Window(time.Now()); w.From > third.Instant+1 {
			t.Errorf("%v ahead of a tick after a missed one; want 0", third.Instant.Until(w.From))
		}
	})
}

// A clock that is in use keeps time: its readings are no more than a hundredth behind.
func TestAClockInUseLosesNoTime(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		c := New()
		c.Learn(Tick{Instant: locktable.At(time.Now()), Room: MaxAdvance, Value: "first", id: "first", Rev: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			c.Run(ctx, nil, func(_ context.Context, room time.Duration) error {
				old, _ := c.Current()
				next := c.Next(old, old.ReadingAt(time.Now()), room)
				time.Sleep(5 * time.Millisecond) // the round trip
				next.Rev = old.Rev + 1
				c.Learn(next)
				return nil
			})
		})
		for range 600 {
			c.Window(time.Now())
			time.Sleep(100 * time.Millisecond)
		}
		w, _ := c.Window(time.Now())
		if lost := w.From.Until(locktable.At(time.Now())); lost > 600*time.Millisecond {
			t.Errorf("the clock lost %v of a minute", lost)
		}
		cancel()
		running.Wait()
	})
}

// However long messages and clients take, no client gets a lease before the last lease
// has lasted its TTL; and some client gets one.
func TestNoLeaseIsGrantedEarly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		bubble.Test(t, func(t *testing.T) {
			w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1))}
			w.last = Tick{Instant: 1_000_000, Room: MaxAdvance, Value: "first", id: "first", Rev: 1}
			for i := range 4 {
				c := New()
				c.Learn(w.last)
				if i == 3 { // it is far away
					c.RecordRoundTrip(400 * time.Millisecond)
				}
				w.clients = append(w.clients, c)
			}
			for i, c := range w.clients {
				w.start(func() {
					for began := time.Now(); time.Since(began) < time.Minute; {
						if w.random.IntN(20) == 0 { // another client opens, and reads the clock
							c.Invalidate()
							c.Learn(w.last)
						}
						if w.pause(); i%2 == 0 || w.random.IntN(10) > 0 {
							w.step(c)
						} else {
							w.writeTick(c)
						}
					}
				})
			}
			time.Sleep(2 * time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.grants < 3 {
				t.Errorf("seed %d: %d grants in a minute; want 3", seed, w.grants)
			}
		})
	}
}
