package localqueue

import (
	"fmt"
	"testing"
)

// When a timer fires, its queue may already be in use for another name.
func TestALateTimerDoesNotAffectAnotherName(t *testing.T) {
	qs := newTestQueues()
	h := qs.grant("x", nil, 5)
	qs.enter(exclusive("x")).Leave(start)
	qs.Drop("x", h, start)
	qs.wantNoQueues(t)
	var waiters []*Waiter[*claimant]
	for i := range 100 { // in every shard
		qs.grant(fmt.Sprint(i), nil, 5)
		waiters = append(waiters, qs.enter(exclusive(fmt.Sprint(i))))
	}
	qs.timers[0].f()
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
