package localqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

var errNet = errors.New("network down")

func TestOnlyTheHeadAsks(t *testing.T) {
	p := newPlace()
	a, b, c := p.enter(exclusive("x")), p.enter(exclusive("x")), p.enter(exclusive("x"))
	other := p.enter(exclusive("y"))
	allAsk(t, "a--a", a, b, c, other)
	a.Refused(&driver.HeldError{}, false)
	allAsk(t, "a--", a, b, c)
	p.grant("x", a, 0)
	allAsk(t, "aa-", a, b, c)
	b.Leave(start)
	allAsk(t, "a", c)
	c.Leave(start)
	other.Leave(start)
	p.empty(t)
}

func TestReadersAskBesideEachOtherUntilOneIsToldHeld(t *testing.T) {
	p := newPlace()
	a, b := p.enter(reader("x")), p.enter(reader("x"))
	allAsk(t, "aa", a, b)
	a.Refused(&driver.HeldError{}, false)
	c, d := p.enter(reader("x")), p.enter(reader("x"))
	allAsk(t, "aa--", a, b, c, d)
	p.Granted("x", b, &hold{}, 0, start)
	allAsk(t, "--", c, d)
	p.Granted("x", a, &hold{}, 0, start)
	allAsk(t, "aa", c, d)
}

func TestNoReaderPassesAWriterHere(t *testing.T) {
	p := newPlace()
	first, writer, last := p.enter(reader("x")), p.enter(exclusive("x")), p.enter(reader("x"))
	allAsk(t, "a--", first, writer, last)
	p.Granted("x", first, &hold{}, 0, start)
	allAsk(t, "a-", writer, last)
	writer.Leave(start)
	allAsk(t, "a", last)
}

func TestAsManyAskAsThereArePermits(t *testing.T) {
	p := newPlace()
	two, one := p.enter(permits("x", 2, 3)), p.enter(permits("x", 1, 3))
	next, last := p.enter(permits("x", 1, 3)), p.enter(permits("x", 1, 3))
	allAsk(t, "aa--", two, one, next, last)
	p.Granted("x", two, &hold{}, 0, start)
	allAsk(t, "aaa", one, next, last)
}

// Four that ask beside each other are granted in any order: their requests may overtake
// each other.
func TestPermitsAskOneByOneAfterOneWasToldHeld(t *testing.T) {
	p := newPlace()
	var line []*Waiter[*person]
	for range 9 {
		line = append(line, p.enter(permits("x", 1, 4)))
	}
	allAsk(t, "aaaa-----", line...)
	for _, w := range line[:4] {
		w.Refused(&driver.HeldError{}, false)
	}
	for _, w := range line[:4] {
		p.Granted("x", w, &hold{}, 0, start)
	}
	allAsk(t, "a----", line[4:]...)
	line[4].Refused(&driver.HeldError{}, false)
	p.Granted("x", line[4], &hold{}, 0, start)
	allAsk(t, "a---", line[5:]...)
	p.Granted("x", line[5], &hold{}, 0, start) // at once: there may be room for more
	allAsk(t, "aa-", line[6:]...)
	for _, w := range line[6:] {
		w.Leave(start)
	}
	p.empty(t)
	next := []*Waiter[*person]{p.enter(permits("x", 1, 4)), p.enter(permits("x", 1, 4))}
	allAsk(t, "aa", next...) // nothing is known any more
}

func TestTryIsRefusedByWhoeverCouldNotStandBesideIt(t *testing.T) {
	p := newPlace()
	if err := p.CheckTry(reader("x")); err != nil {
		t.Error(err)
	}
	a := p.enter(reader("x"))
	if err := p.CheckTry(reader("x")); err != nil {
		t.Errorf("a reader beside one that asks: %v", err)
	}
	if p.CheckTry(exclusive("x")) == nil {
		t.Error("a writer passes a reader that asks")
	}
	a.Refused(&driver.HeldError{Holders: 2, Holder: driver.Holder{Fence: 7}}, false)
	held, ok := p.CheckTry(reader("x")).(*driver.HeldError)
	if !ok || held.Holders != 2 || held.Holder.Fence != 7 || held.Position != 0 {
		t.Errorf("a reader passes one that waits, or hears %+v", held)
	}
	a.Leave(start)
	writer := p.enter(exclusive("x"))
	if p.CheckTry(reader("x")) == nil {
		t.Error("a reader passes a writer that asks")
	}
	writer.Failed(start, errNet)
	if err := p.CheckTry(exclusive("x")); !errors.Is(err, errNet) {
		t.Errorf("nobody knows whether it is held, and a try hears %v", err)
	}
}

func TestThoseWhoWaitBearAFailingBackendTogether(t *testing.T) {
	const patience = time.Second
	p := newPlace()
	head, early := p.enter(exclusive("x")), p.enter(exclusive("x"))
	late := p.come(exclusive("x"), &person{}, start.Add(patience/2))
	if since := head.Failed(start, errNet); !since.Equal(start) {
		t.Errorf("the head bears it since %v", since)
	}
	if err := early.WaitReason(); !errors.Is(err, errNet) {
		t.Errorf("one that waits hears %v", err)
	}
	head.FailOthers(patience, errNet, start.Add(patience-1))
	allAsk(t, "a--", head, early, late)
	head.FailOthers(patience, errNet, start.Add(patience))
	head.Leave(start.Add(patience))
	if <-early.Turn(); !errors.Is(early.Err(), errNet) || early.Leave(start) {
		t.Errorf("who has borne it for long enough hears %v", early.Err())
	}
	allAsk(t, "a", late)
	if since := late.Failed(start.Add(2*patience), errNet); !since.Equal(start.Add(patience / 2)) {
		t.Errorf("who came in the middle bears it since %v after its start", since.Sub(start))
	}
	late.Refused(&driver.HeldError{}, false) // it answers
	last := p.enter(exclusive("x"))
	if err := last.WaitReason(); errors.Is(err, errNet) {
		t.Error("the failure is over, and is still heard of")
	}
}

// A waiter that is out because of a failing backend may have been in the way of a later
// one.
func TestReaderAsksWhenTheWriterBeforeItFailed(t *testing.T) {
	p := newPlace()
	first, writer := p.enter(reader("x")), p.enter(exclusive("x"))
	late := p.come(reader("x"), &person{}, start.Add(time.Hour))
	first.Failed(start, errNet)
	first.FailOthers(time.Second, errNet, start.Add(time.Hour))
	if !errors.Is(writer.Err(), errNet) {
		t.Fatal("the writer still waits")
	}
	allAsk(t, "a", late)
}
