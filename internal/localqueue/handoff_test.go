package localqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestHoldGoesFromOneToTheNextInTheirOrder(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 2)
	a, b, c := p.enter(exclusive("x")), p.enter(exclusive("x")), p.enter(exclusive("x"))
	allAsk(t, "---", a, b, c)
	for i, w := range []*Waiter[*person]{a, b} {
		if !p.Pass("x", h, start) {
			t.Fatalf("it was not passed on to number %d", i)
		}
		if <-w.Turn(); w.Claim.got != h {
			t.Errorf("number %d did not get it", i)
		}
	}
	if p.Pass("x", h, start) || h.passed != 2 {
		t.Error("it was passed on more often than it had fences")
	}
}

// No waiter stays out of the backend's queue for a lease that cannot come: that would let
// other processes pass.
func TestHeadAsksAsSoonAsTheLastFenceIsInUse(t *testing.T) {
	p := newPlace()
	p.grant("x", nil, 0)
	late := p.enter(exclusive("x"))
	allAsk(t, "a", late)
	late.Leave(start)
	p.empty(t)

	h := p.grant("x", nil, 1)
	a, b, c := p.enter(exclusive("x")), p.enter(exclusive("x")), p.enter(exclusive("x"))
	allAsk(t, "---", a, b, c)
	p.Pass("x", h, start)
	allAsk(t, "-a-", a, b, c)
}

func TestHeadAsksWhenTheHandoffTimeIsOver(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	a := p.come(exclusive("x"), &person{kind: "exclusive"}, start.Add(handoff/4))
	allAsk(t, "-", a)
	if len(p.timers) != 1 || p.timers[0].in != handoff*3/4 {
		t.Fatalf("timers %+v", p.timers)
	}
	p.timers[0].f()
	allAsk(t, "a", a)
	if p.Pass("x", h, start.Add(handoff)) {
		t.Error("it was passed on after that")
	}
	a.Leave(start)
	p.empty(t)
}

func TestHoldIsNotPassedOnAfterTheHandoffTimeThoughNoTimerFired(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	a := p.enter(exclusive("x"))
	if p.Pass("x", h, start.Add(handoff)) {
		t.Error("it was passed on")
	}
	allAsk(t, "a", a)
	if !p.timers[0].stopped {
		t.Error("the timer still runs")
	}
	p.timers[0].f() // it was too late to stop it
	allAsk(t, "a", a)
}

// The queue that a timer knows may be another name's by the time it fires.
func TestTimerThatComesTooLateDoesNothingToAnotherName(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	p.enter(exclusive("x")).Leave(start)
	p.Drop("x", h, start)
	p.empty(t)
	var waiters []*Waiter[*person]
	for i := range 100 { // in every shard
		p.grant(fmt.Sprint(i), nil, 5)
		waiters = append(waiters, p.enter(exclusive(fmt.Sprint(i))))
	}
	p.timers[0].f()
	for _, w := range waiters {
		if asks(w) {
			t.Fatal("somebody has lost its hand-off")
		}
	}
}

func TestOnlyAClaimOfTheSameKindTakesAHoldOver(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	a := p.enter(reader("x"))
	allAsk(t, "a", a)
	b := p.enter(exclusive("x"))
	if p.Pass("x", h, start) {
		t.Error("it was passed on past a reader")
	}
	allAsk(t, "a-", a, b)
}

func TestThoseToWhomAHoldCouldBePassedAreCountedUpToTheFirstOther(t *testing.T) {
	p := newPlace()
	var line []*Waiter[*person]
	for _, kind := range "aaabaa" {
		w := p.enter(exclusive("x"))
		w.Claim.kind = string(kind)
		line = append(line, w)
	}
	for _, c := range []struct {
		of, most, n int
		all         bool
	}{
		{of: 0, most: 9, n: 2}, {of: 0, most: 2, n: 2}, {of: 0, most: 1, n: 1}, {of: 2, most: 9},
		{of: 3, most: 9}, {of: 4, most: 9, n: 1, all: true}, {of: 4, most: 1, n: 1, all: true},
		{of: 5, most: 9, all: true},
	} {
		w := line[c.of]
		n, all := w.CountServed(c.most, func(other *person) bool { return other.kind == w.Claim.kind })
		if n != c.n || all != c.all {
			t.Errorf("%d of %d behind number %d: %d, all: %v", c.n, c.most, c.of, n, all)
		}
	}
	for _, w := range line {
		w.Leave(start)
	}
	p.empty(t)
}

func TestHoldThatIsNoGoodAnyMoreGoesBack(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	a := p.enter(exclusive("x"))
	h.left = 0
	if p.Pass("x", h, start) {
		t.Error("it was passed on")
	}
	allAsk(t, "a", a)
}

func TestDroppedAndLostHoldsAreNotPassedOn(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	a := p.enter(exclusive("x"))
	p.Drop("x", h, start)
	allAsk(t, "a", a)
	if p.Pass("x", h, start) {
		t.Error("it was passed on")
	}
	a.Leave(start)
	p.Granted("x", nil, &hold{left: 5, lost: true}, 5, start)
	p.empty(t)
}

// A grant on a name says that an earlier hold of it is gone, whether or not the new one
// can be passed on.
func TestHoldThatWasTakenFromUsByOurselvesIsNotPassedOn(t *testing.T) {
	for _, spare := range []int{0, 3} {
		p := newPlace()
		old := p.grant("x", nil, 5)
		a := p.enter(exclusive("x"))
		p.grant("x", nil, spare)
		if p.Pass("x", old, start) {
			t.Errorf("the old hold was passed on, beside one with %d to spare", spare)
		}
		allAsk(t, map[bool]string{true: "a", false: "-"}[spare == 0], a)
	}
}

func TestHandoffThatIsOffPassesNothingOn(t *testing.T) {
	q := New[*person](start, -1, nil)
	h := &hold{left: 5}
	q.Granted("x", nil, h, 5, start)
	if q.Names() > 0 || q.Pass("x", h, start) {
		t.Error("it could be passed on")
	}
}

func TestWaiterThatGivesUpHearsThatALeaseWasPassedToIt(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, 5)
	a, b := p.enter(exclusive("x")), p.enter(exclusive("x"))
	p.Pass("x", h, start)
	if !a.Leave(start) || a.Claim.got != h {
		t.Error("it does not hear of it")
	}
	if !p.Pass("x", h, start) || b.Claim.got != h {
		t.Error("it did not go on to the next")
	}
}

// A hold whose time to be passed on is over has a queue until it ends.
func TestTheQueueOfAHoldThatIsHeldForLongGoesWithIt(t *testing.T) {
	p := newPlace()
	released, dropped := p.grant("a", nil, 5), p.grant("b", nil, 5)
	if p.Pass("a", released, start.Add(time.Hour)) {
		t.Error("it was passed on")
	}
	p.Drop("b", dropped, start.Add(time.Hour))
	p.empty(t)
}

func TestFirstInTheBackendsQueueIsKnown(t *testing.T) {
	p := newPlace()
	if _, ok := p.Queued("x"); ok {
		t.Error("nobody is there")
	}
	a := p.come(exclusive("x"), &person{kind: "a"}, start)
	p.enter(exclusive("x"))
	if _, ok := p.Queued("x"); ok {
		t.Error("nobody was told that it is held")
	}
	a.Refused(&driver.HeldError{}, false)
	if claim, ok := p.Queued("x"); !ok || claim.kind != "a" {
		t.Errorf("%+v, %v", claim, ok)
	}
}

// A process that had to wait for others makes room for them when it has served the
// waiters that waited with it; and it asks for no more fences.
func TestAHoldThatOthersWaitForDoesNotGoRound(t *testing.T) {
	for rivals, passed := range map[bool]int{false: 5, true: 2} {
		p := newPlace()
		first := p.enter(exclusive("x"))
		first.Refused(&driver.HeldError{}, rivals)
		p.enter(exclusive("x"))
		p.enter(exclusive("x"))
		if n, all := first.CountServed(10, func(*person) bool { return true }); n != 2 || all == rivals {
			t.Errorf("with rivals %v: %d behind it, and they are all: %v", rivals, n, all)
		}
		h := p.grant("x", first, 5)
		n := 0
		for ; p.Pass("x", h, start); n++ {
			p.enter(exclusive("x")) // it comes back
		}
		if n != passed {
			t.Errorf("with rivals %v it was passed on %d times, want %d", rivals, n, passed)
		}
	}
}
