package localqueue

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/driver"
)

func TestEachHearsItsOwnPlace(t *testing.T) {
	p := newPlace()
	var all []*Waiter[*person]
	for range 6 {
		all = append(all, p.enter(exclusive("x")))
	}
	for i, w := range all[1:] {
		if n := position(t, w); n != i+2 {
			t.Errorf("number %d hears place %d before anybody was told", i+2, n)
		}
	}
	all[0].Refused(&driver.HeldError{Name: "x", Position: 10, Fence: 7}, false)
	for i, w := range all[1:] {
		if n := position(t, w); n != i+11 {
			t.Errorf("number %d hears place %d, and the head stands at 10", i+2, n)
		}
	}
	if held := all[3].WaitReason().(*driver.HeldError); held.Fence != 7 || held.Name != "x" {
		t.Errorf("it hears %+v", held)
	}
	if n := position(t, all[0]); n != 10 {
		t.Errorf("the head itself hears place %d", n)
	}
	all[2].Leave(start)
	if n := position(t, all[3]); n != 12 {
		t.Errorf("one ahead has left, and it hears place %d", n)
	}
	if p.grant("x", all[0], 0); all[0].WaitReason() != nil {
		t.Errorf("who has left hears %v", all[0].WaitReason())
	}
	if n := position(t, all[3]); n != 2 {
		t.Errorf("the head was granted, and the second hears place %d", n)
	}
	if held := all[3].WaitReason().(*driver.HeldError); held.Fence != 0 {
		t.Errorf("it hears of a holder who is gone: %+v", held)
	}
}

// While a hold of this process may be passed on, the backend is not asked. So the waiters
// and the tries hear of that hold.
func TestTheHolderIsTheLastOneThatIsKnown(t *testing.T) {
	p := newPlace()
	first, second := p.enter(exclusive("x")), p.enter(exclusive("x"))
	holds := func(when, want string, fence uint64) {
		t.Helper()
		for how, err := range map[string]error{"a waiter": second.WaitReason(), "a try": p.CheckTry(exclusive("x"))} {
			held := err.(*driver.HeldError)
			if h := held.Holder; h.Owner.Client != want || h.Fence != fence || (held.Holders == 1) != (want != "") {
				t.Errorf("%s: %s hears %+v, want %q with the fence %d", when, how, held, want, fence)
			}
		}
	}
	holds("before an answer", "", 0)
	first.Refused(&driver.HeldError{Name: "x", Position: 1, Holders: 1, Holder: driver.Holder{Fence: 7, Owner: driver.Owner{Client: "other"}}}, true)
	holds("while another process holds it", "other", 7)
	first.Refused(&driver.HeldError{Name: "x", Position: 2}, false)
	holds("while others wait", "", 0)
	p.enter(exclusive("x"))
	third := p.enter(exclusive("x"))
	h := p.grant("x", first, 3)
	holds("while it is held here", "own", 1)
	if second.Leave(start); !p.Pass("x", h, start) {
		t.Fatal("it was not passed on")
	}
	second = third
	holds("after it was passed on", "own", 2)
}

// Places are counted in a tree once there are many: it has to say what counting says.
func TestPlacesAreThoseThatCountingSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := newPlace()
	var line []*Waiter[*person]
	for range 20_000 {
		switch r := random.IntN(100); {
		case r < 50 || len(line) < 2:
			line = append(line, p.enter(exclusive("x")))
		case r < 90:
			i := random.IntN(len(line))
			if random.IntN(4) == 0 {
				i = 0
			}
			line[i].Leave(start)
			line = slices.Delete(line, i, i+1)
		case r < 91:
			for len(line) > 2 && random.IntN(200) > 0 { // most of them leave
				line[len(line)-1].Leave(start)
				line = line[:len(line)-1]
			}
		default:
			i := 1 + random.IntN(len(line)-1)
			if n := position(t, line[i]); n != i+1 {
				t.Fatalf("place %d, want %d of %d", n, i+1, len(line))
			}
		}
	}
	for _, w := range line {
		w.Leave(start)
	}
	p.empty(t)
}
