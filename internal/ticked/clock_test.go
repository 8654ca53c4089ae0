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

// A simulation has, in virtual time, a server with a clock's key and one entry, and
// clients that read the clock.
type simulation struct {
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
func (sim *simulation) pause() {
	longest := 2 * time.Millisecond
	switch n := sim.random.IntN(100); {
	case n < 3:
		longest = 4 * time.Second
	case n < 20:
		longest = 600 * time.Millisecond
	}
	took := time.Duration(sim.random.Int64N(int64(longest)))
	sim.mu.Unlock()
	time.Sleep(took)
	sim.mu.Lock()
}

func (sim *simulation) start(f func()) {
	go func() {
		sim.mu.Lock()
		defer sim.mu.Unlock()
		f()
	}()
}

// write stores a tick, as the server does. Each client receives it after a pause.
func (sim *simulation) write(t Tick) Tick {
	t.Rev = sim.last.Rev + 1
	sim.last = t
	for _, c := range sim.clients {
		sim.start(func() { sim.pause(); c.Learn(t) })
	}
	return t
}

// step acquires the lease if the last one has expired.
func (sim *simulation) step(c *Clock) {
	window, _ := c.Window(time.Now())
	seen, ends := sim.granted, sim.ends
	sim.pause() // until the request is sent
	t, addTick, ok := c.ForSteps(window.From, window.From, time.Now())
	if !ok {
		return
	}
	next := c.Next(t, window.From, MaxAdvance)
	sim.pause() // until the request arrives
	tickIsValid := sim.last.Value == t.Value
	if until := Latest(window); !addTick && until > window.From {
		tickIsValid = sim.last.Value > Prefix(t.Instant, t.Room) && sim.last.Value < Prefix(until+1, MaxAdvance)
	}
	if !tickIsValid || !sim.granted.Equal(seen) {
		return
	}
	if addTick {
		next = sim.write(next)
	}
	if window.From >= ends {
		if left := leaseTTL - time.Since(sim.granted); left > 0 && sim.grants > 0 {
			sim.t.Errorf("granted %v too early", left)
		}
		sim.granted, sim.ends = time.Now(), window.To.Add(leaseTTL)
		sim.grants++
	}
	if sim.pause(); addTick {
		c.Learn(next)
	}
}

// writeTick writes a tick, as Run does.
func (sim *simulation) writeTick(c *Clock) {
	t, _ := c.Current()
	room := MaxAdvance
	if sim.random.IntN(3) == 0 {
		room = IdleAdvance
	}
	next := c.Next(t, t.ReadingAt(time.Now()), room)
	sim.pause()
	if sim.last.Value == t.Value {
		sim.write(next)
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
			sim := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1))}
			sim.last = Tick{Instant: 1_000_000, Room: MaxAdvance, Value: "first", id: "first", Rev: 1}
			for i := range 4 {
				c := New()
				c.Learn(sim.last)
				if i == 3 { // it is far away
					c.RecordRoundTrip(400 * time.Millisecond)
				}
				sim.clients = append(sim.clients, c)
			}
			for i, c := range sim.clients {
				sim.start(func() {
					for began := time.Now(); time.Since(began) < time.Minute; {
						if sim.random.IntN(20) == 0 { // another client opens, and reads the clock
							c.Invalidate()
							c.Learn(sim.last)
						}
						if sim.pause(); i%2 == 0 || sim.random.IntN(10) > 0 {
							sim.step(c)
						} else {
							sim.writeTick(c)
						}
					}
				})
			}
			time.Sleep(2 * time.Minute)
			sim.mu.Lock()
			defer sim.mu.Unlock()
			if sim.grants < 3 {
				t.Errorf("seed %d: %d grants in a minute; want 3", seed, sim.grants)
			}
		})
	}
}
