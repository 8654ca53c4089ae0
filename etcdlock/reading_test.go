package etcdlock

import (
	"math/rand/v2"
	"strconv"
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
	dice    *rand.Rand
	clients []*clock
	last    tick
	granted time.Time         // the real time of the last grant
	ends    locktable.Instant // the end of the lease, as stored in the entry
	grants  int
}

const leaseTTL = 400 * time.Millisecond

// pause sleeps, as a message or a goroutine takes time: mostly short, sometimes very
// long.
func (w *world) pause() {
	longest := 2 * time.Millisecond
	switch n := w.dice.IntN(100); {
	case n < 3:
		longest = 4 * time.Second
	case n < 20:
		longest = 600 * time.Millisecond
	}
	took := time.Duration(w.dice.Int64N(int64(longest)))
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
func (w *world) write(t tick) tick {
	t.rev = w.last.rev + 1
	w.last = t
	for _, c := range w.clients {
		w.start(func() { w.pause(); c.learn(t) })
	}
	return t
}

// step acquires the lease if the last one has expired.
func (w *world) step(c *clock) {
	window, _ := c.window(time.Now())
	seen, ends := w.granted, w.ends
	w.pause() // until the request is sent
	t, addTick, ok := c.tickForSteps(window.From, window.From, time.Now())
	if !ok {
		return
	}
	next := c.next(t, window.From, maxTickAdvance)
	w.pause() // until the request arrives
	tickIsValid := w.last.value == t.value
	if until := latest(window); !addTick && until > window.From {
		tickIsValid = w.last.value > tickPrefix(t.instant, t.room) && w.last.value < tickPrefix(until+1, maxTickAdvance)
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
		c.learn(next)
	}
}

// writeTick writes a tick, as runClock does.
func (w *world) writeTick(c *clock) {
	t, _ := c.current()
	room := maxTickAdvance
	if w.dice.IntN(3) == 0 {
		room = idleAdvance
	}
	next := c.next(t, t.after(time.Now()), room)
	w.pause()
	if w.last.value == t.value {
		w.write(next)
	}
}

// A reading that advanced without a tick is at most maxReceiverSkew ahead of the next
// tick. It is not ahead of a tick if the client has missed the tick before that.
func TestAReadingLeadsOnlyTheNextTick(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		first := tick{instant: 1_000_000, room: maxTickAdvance, value: "first", id: "first", rev: 1}
		received, missed := newClock(), newClock()
		received.learn(first)
		missed.learn(first)
		time.Sleep(time.Second)
		second := newTick(first, first.instant.Add(maxTickAdvance), maxTickAdvance)
		second.rev = 2
		third := newTick(second, second.instant.Add(maxReceiverSkew), maxTickAdvance)
		third.rev = 3
		received.learn(second)
		if w, _ := received.window(time.Now()); w.From != second.instant.Add(maxReceiverSkew) {
			t.Errorf("%v ahead of the next tick; want maxReceiverSkew", second.instant.Until(w.From))
		}
		missed.learn(third)
		if w, _ := missed.window(time.Now()); w.From > third.instant+1 {
			t.Errorf("%v ahead of a tick after a missed one; want 0", third.instant.Until(w.From))
		}
	})
}

// However long messages and clients take, no client gets a lease before the last lease
// has lasted its TTL; and some client gets one.
func TestNoLeaseIsGrantedEarly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		bubble.Test(t, func(t *testing.T) {
			w := &world{t: t, dice: rand.New(rand.NewPCG(seed, 1))}
			w.last = tick{instant: 1_000_000, room: maxTickAdvance, value: "first", id: "first", rev: 1}
			for i := range 4 {
				c := newClock()
				c.learn(w.last)
				if i == 3 { // it is far away
					c.recordRoundTrip(400 * time.Millisecond)
				}
				w.clients = append(w.clients, c)
			}
			for i, c := range w.clients {
				w.start(func() {
					for began := time.Now(); time.Since(began) < time.Minute; {
						if w.dice.IntN(20) == 0 { // another client opens, and reads the clock
							c.invalidate()
							c.learn(w.last)
						}
						if w.pause(); i%2 == 0 || w.dice.IntN(10) > 0 {
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

// A client that reads many names, each of them held once, does not keep all lease ends.
func TestPastLeaseEndsAreForgotten(t *testing.T) {
	s := &store{clock: newClock(), leaseEnds: map[string]locktable.Instant{}}
	for i := range locktable.Instant(10_000) {
		s.clock.learn(tick{instant: i + 1, rev: int64(i + 1)})
		s.recordLeases(strconv.Itoa(int(i)), &locktable.Entry{Holders: []locktable.Holder{{Expires: i + 10}}})
	}
	if n := len(s.leaseEnds); n > 200 {
		t.Errorf("the store keeps %d lease ends; want at most 200", n)
	}
}
