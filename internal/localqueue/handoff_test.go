package localqueue

import (
	"fmt"
	"testing"
)

// When a timer fires, its queue may already be in use for another name.
func TestALateTimerDoesNotAffectAnotherName(t *testing.T) {
	p := newTestQueues()
	h := p.grant("x", nil, 5)
	p.enter(exclusive("x")).Leave(start)
	p.Drop("x", h, start)
	p.wantNoQueues(t)
	var waiters []*Waiter[*claimant]
	for i := range 100 { // in every shard
		p.grant(fmt.Sprint(i), nil, 5)
		waiters = append(waiters, p.enter(exclusive(fmt.Sprint(i))))
	}
	p.timers[0].f()
	for _, w := range waiters {
		if isAsking(w) {
			t.Fatal("a late timer made a waiter ask")
		}
	}
}

func TestANegativeHandoffWindowPassesNoHoldOn(t *testing.T) {
	q := New[*claimant](start, -1, nil)
	h := &hold{left: 5}
	q.Granted("x", nil, h, 5, start)
	if q.Names() > 0 || q.Pass("x", h, start) {
		t.Error("the hold has a queue, or was passed on")
	}
}
