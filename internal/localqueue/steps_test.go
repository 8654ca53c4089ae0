package localqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

const crowd = 10_000

// linear fails the test if loops visited more waiters than a few for each that came.
func (p *place) linear(t *testing.T) {
	t.Helper()
	if n := p.visits(); n > 4*crowd {
		t.Errorf("%d were looked at for %d that came", n, crowd)
	}
	p.empty(t)
}

func (p *place) enterAll(c *driver.Claim) []*Waiter[*person] {
	all := make([]*Waiter[*person], crowd)
	for i := range all {
		all[i] = p.enter(c)
	}
	return all
}

func TestReadersThatEnterAndAreGrantedLookAtFew(t *testing.T) {
	p := newPlace()
	all := p.enterAll(reader("x"))
	for _, w := range all {
		if !asks(w) || p.CheckTry(reader("x")) != nil {
			t.Fatal("a reader waits for another that asks")
		}
	}
	for _, w := range all {
		w.RecordHeld(&driver.HeldError{Position: 1}, false)
	}
	for _, w := range all {
		p.Granted("x", w, &hold{}, 0, start)
	}
	p.linear(t)
}

func TestWaitersThatLeaveLookAtFew(t *testing.T) {
	for kind, c := range map[string]*driver.Claim{
		"exclusive": exclusive("x"), "permits": permits("x", 2, 5), "readers": reader("x"),
	} {
		for way, order := range map[string]func(i int) int{
			"first to last":  func(i int) int { return i },
			"last to first":  func(i int) int { return crowd - 1 - i },
			"here and there": func(i int) int { return i * 7919 % crowd },
		} {
			t.Run(kind+" "+way, func(t *testing.T) {
				p := newPlace()
				all := p.enterAll(c)
				for i := range all {
					w := all[order(i)]
					_ = w.WaitReason()
					w.Leave(start)
				}
				p.linear(t)
			})
		}
	}
}

func TestHandoffsLookAtFew(t *testing.T) {
	p := newPlace()
	h := p.grant("x", nil, crowd)
	p.enterAll(exclusive("x"))
	for p.Pass("x", h, start) {
	}
	if h.passed != crowd {
		t.Errorf("%d hand-offs", h.passed)
	}
	p.linear(t)
}

func TestWaitersThatFailTogetherLookAtFew(t *testing.T) {
	p := newPlace()
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
	p.linear(t)
}
