package localqueue

import (
	"fmt"
	"testing"
)

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

func TestHandoffThatIsOffPassesNothingOn(t *testing.T) {
	q := New[*person](start, -1, nil)
	h := &hold{left: 5}
	q.Granted("x", nil, h, 5, start)
	if q.Names() > 0 || q.Pass("x", h, start) {
		t.Error("it could be passed on")
	}
}
