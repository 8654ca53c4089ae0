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

// world is a server with a clock's key and one entry, and clients that read that clock,
// in virtual time.
type world struct {
	t *testing.T

	mu      sync.Mutex // protects all below; held except in pauses
	dice    *rand.Rand
	clients []*clock
	last    tick
	granted time.Time         // the entry, in real time
	ends    locktable.Instant // as it is stored
	grants  int
}

const leaseFor = 400 * time.Millisecond

// pause is the time that a message or a goroutine takes: mostly little, sometimes very
// much.
func (w *world) pause() {
	most := 2 * time.Millisecond
	switch n := w.dice.IntN(100); {
	case n < 3:
		most = 4 * time.Second
	case n < 20:
		most = 600 * time.Millisecond
	}
	took := time.Duration(w.dice.Int64N(int64(most)))
	w.mu.Unlock()
	time.Sleep(took)
	w.mu.Lock()
}

func (w *world) goes(f func()) {
	go func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f()
	}()
}

// write puts a tick, as the server does, and the clients receive it, each in its time.
func (w *world) write(t tick) tick {
	t.rev = w.last.rev + 1
	w.last = t
	for _, c := range w.clients {
		w.goes(func() { w.pause(); c.learn(t) })
	}
	return t
}

// step takes the entry if its lease is over.
func (w *world) step(c *clock) {
	window, _ := c.window(time.Now())
	seen, ends := w.granted, w.ends
	w.pause() // until it is sent
	t, ticks, ok := c.tickForSteps(window.From, window.From, time.Now())
	if !ok {
		return
	}
	next := c.next(t, window.From, maxTickAdvance)
	w.pause() // until it is there
	stands := w.last.value == t.value
	if until := latest(window); !ticks && until > window.From {
		stands = w.last.value > tickPrefix(t.is, t.room) && w.last.value < tickPrefix(until+1, maxTickAdvance)
	}
	if !stands || !w.granted.Equal(seen) {
		return
	}
	if ticks {
		next = w.write(next)
	}
	if window.From >= ends {
		if left := leaseFor - time.Since(w.granted); left > 0 && w.grants > 0 {
			w.t.Errorf("granted %v too early", left)
		}
		w.granted, w.ends = time.Now(), window.To.Add(leaseFor)
		w.grants++
	}
	if w.pause(); ticks {
		c.learn(next)
	}
}

// beats writes a tick, as a client's loop does.
func (w *world) beats(c *clock) {
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

// A clock that has gone on while no tick came is maxReceiverSkew ahead of the next tick
// at most, and not ahead at all of a tick that follows one which it has not received.
func TestAClockIsAheadOnlyOfTheTickThatFollows(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		first := tick{is: 1_000_000, room: maxTickAdvance, value: "first", id: "first", rev: 1}
		heard, missed := newClock(), newClock()
		heard.learn(first)
		missed.learn(first)
		time.Sleep(time.Second)
		second := newTick(first, first.is.Add(maxTickAdvance), maxTickAdvance)
		second.rev = 2
		third := newTick(second, second.is.Add(maxReceiverSkew), maxTickAdvance)
		third.rev = 3
		heard.learn(second)
		if w, _ := heard.window(time.Now()); w.From != second.is.Add(maxReceiverSkew) {
			t.Errorf("%v ahead of the tick that follows; want slip", second.is.Until(w.From))
		}
		missed.learn(third)
		if w, _ := missed.window(time.Now()); w.From > third.is+1 {
			t.Errorf("%v ahead of a tick that follows another; want nothing", third.is.Until(w.From))
		}
	})
}

// No client enters before the last lease has lasted as long as was asked for, whatever
// clients do and however long each message takes; and some client enters.
func TestNobodyEntersEarly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		bubble.Test(t, func(t *testing.T) {
			w := &world{t: t, dice: rand.New(rand.NewPCG(seed, 1))}
			w.last = tick{is: 1_000_000, room: maxTickAdvance, value: "first", id: "first", rev: 1}
			for i := range 4 {
				c := newClock()
				c.learn(w.last)
				if i == 3 { // it is far away
					c.recordTrip(400 * time.Millisecond)
				}
				w.clients = append(w.clients, c)
			}
			for i, c := range w.clients {
				w.goes(func() {
					for began := time.Now(); time.Since(began) < time.Minute; {
						if w.dice.IntN(20) == 0 { // another client opens, and reads the clock
							c.forget()
							c.learn(w.last)
						}
						if w.pause(); i%2 == 0 || w.dice.IntN(10) > 0 {
							w.step(c)
						} else {
							w.beats(c)
						}
					}
				})
			}
			time.Sleep(2 * time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.grants < 3 {
				t.Errorf("seed %d: %d grants in a minute", seed, w.grants)
			}
		})
	}
}

// A client that only reads names, each of them held once, does not keep their ends for
// ever.
func TestTheEndsOfLeasesThatArePastAreForgotten(t *testing.T) {
	s := &store{clock: newClock(), leaseEnds: map[string]locktable.Instant{}}
	for i := range locktable.Instant(10_000) {
		s.clock.learn(tick{is: i + 1, rev: int64(i + 1)})
		s.recordLeases(strconv.Itoa(int(i)), &locktable.Entry{Holders: []locktable.Holder{{Expires: i + 10}}})
	}
	if n := len(s.leaseEnds); n > 200 {
		t.Errorf("it knows %d ends", n)
	}
}
