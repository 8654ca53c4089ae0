package localqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

const waiterCount = 10_000

// wantFewVisits fails the test if loops visited more than a few waiters for each one.
func (p *testQueues) wantFewVisits(t *testing.T) {
	t.Helper()
	if n := p.visits(); n > 4*waiterCount {
		t.Errorf("loops visited %d waiters for %d that entered", n, waiterCount)
	}
	p.wantNoQueues(t)
}

func (p *testQueues) enterAll(c *driver.Claim) []*Waiter[*claimant] {
	all := make([]*Waiter[*claimant], waiterCount)
	for i := range all {
		all[i] = p.enter(c)
	}
	return all
}

func TestEnteringReadersVisitFewWaiters(t *testing.T) {
	p := newTestQueues()
	all := p.enterAll(reader("x"))
	for _, w := range all {
		if !isAsking(w) || p.CheckTry(reader("x")) != nil {
			t.Fatal("a reader waits for another reader")
		}
	}
	for _, w := range all {
		w.RecordHeld(&driver.HeldError{Position: 1}, false)
	}
	for _, w := range all {
		p.Granted("x", w, &hold{}, 0, start)
	}
	p.wantFewVisits(t)
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
				p := newTestQueues()
				all := p.enterAll(c)
				for i := range all {
					w := all[order(i)]
					_ = w.WaitReason()
					w.Leave(start)
				}
				p.wantFewVisits(t)
			})
		}
	}
}

func TestHandoffsVisitFewWaiters(t *testing.T) {
	p := newTestQueues()
	h := p.grant("x", nil, waiterCount)
	p.enterAll(exclusive("x"))
	for p.Pass("x", h, start) {
	}
	if h.passed != waiterCount {
		t.Errorf("%d hand-offs", h.passed)
	}
	p.wantFewVisits(t)
}

func TestFailingWaitersVisitFewWaiters(t *testing.T) {
	p := newTestQueues()
	readers := p.enterAll(reader("x"))
	writer := p.enter(exclusive("x"))
	for _, w := range readers {
		w.RecordFailure(start, errNet)
		w.FailLocalWaiters(time.Second, errNet, start.Add(time.Second))
		w.Leave(start)
	}
	if !errors.Is(writer.Err(), errNet) {
		t.Error("the writer still waits")
	}
	p.wantFewVisits(t)
}
