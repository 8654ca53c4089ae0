package localqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

const waiterCount = 10_000

// wantFewVisits fails the test if loops visited more than a few waiters for each one.
func (qs *testQueues) wantFewVisits(t *testing.T) {
	t.Helper()
	if n := qs.visits(); n > 4*waiterCount {
		t.Errorf("loops visited %d waiters for %d that entered", n, waiterCount)
	}
	qs.wantNoQueues(t)
}

func (qs *testQueues) enterAll(c *driver.Claim) []*Waiter[*claimant] {
	all := make([]*Waiter[*claimant], waiterCount)
	for i := range all {
		all[i] = qs.enter(c)
	}
	return all
}

func TestEnteringReadersVisitFewWaiters(t *testing.T) {
	qs := newTestQueues()
	all := qs.enterAll(reader("x"))
	for _, w := range all {
		if !isAsking(w) || qs.CheckTry(reader("x")) != nil {
			t.Fatal("a reader waits for another reader")
		}
	}
	for _, w := range all {
		w.RecordHeld(&driver.HeldError{Position: 1}, false)
	}
	for _, w := range all {
		qs.Granted("x", w, &hold{}, 0, start)
	}
	qs.wantFewVisits(t)
}

func TestLeavingWaitersVisitFewWaiters(t *testing.T) {
	for kind, c := range map[string]*driver.Claim{
		"exclusive": exclusive("x"), "permits": permits("x", 2, 5), "readers": reader("x"),
	} {
		for orderName, order := range map[string]func(i int) int{
			"first to last": func(i int) int { return i },
			"last to first": func(i int) int { return waiterCount - 1 - i },
			"mixed":         func(i int) int { return i * 7919 % waiterCount },
		} {
			t.Run(kind+" "+orderName, func(t *testing.T) {
				qs := newTestQueues()
				all := qs.enterAll(c)
				for i := range all {
					w := all[order(i)]
					_ = w.WaitReason()
					w.Leave(start)
				}
				qs.wantFewVisits(t)
			})
		}
	}
}

func TestHandoffsVisitFewWaiters(t *testing.T) {
	qs := newTestQueues()
	h := qs.grant("x", nil, waiterCount)
	qs.enterAll(exclusive("x"))
	for qs.Pass("x", h, start) {
	}
	if h.passed != waiterCount {
		t.Errorf("%d hand-offs, want %d", h.passed, waiterCount)
	}
	qs.wantFewVisits(t)
}

func TestFailingWaitersVisitFewWaiters(t *testing.T) {
	qs := newTestQueues()
	readers := qs.enterAll(reader("x"))
	writer := qs.enter(exclusive("x"))
	for _, w := range readers {
		w.RecordFailure(start, errNet)
		w.FailLocalWaiters(time.Second, errNet, start.Add(time.Second))
		w.Leave(start)
	}
	if !errors.Is(writer.Err(), errNet) {
		t.Error("the writer still waits")
	}
	qs.wantFewVisits(t)
}
