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
	all[0].Told(&driver.HeldError{Name: "x", Position: 10, Fence: 7}, false)
	for i, w := range all[1:] {
		if n := position(t, w); n != i+11 {
			t.Errorf("number %d hears place %d, and the head stands at 10", i+2, n)
		}
	}
	if held := all[3].Heard().(*driver.HeldError); held.Fence != 7 || held.Name != "x" {
		t.Errorf("it hears %+v", held)
	}
	if n := position(t, all[0]); n != 10 {
		t.Errorf("the head itself hears place %d", n)
	}
	all[2].Leave(start)
	if n := position(t, all[3]); n != 12 {
		t.Errorf("one ahead has left, and it hears place %d", n)
	}
	if p.grant("x", all[0], 0); all[0].Heard() != nil {
		t.Errorf("who has left hears %v", all[0].Heard())
	}
	if n := position(t, all[3]); n != 2 {
		t.Errorf("the head was granted, and the second hears place %d", n)
	}
	if held := all[3].Heard().(*driver.HeldError); held.Fence != 0 {
		t.Errorf("it hears of a holder who is gone: %+v", held)
	}
}

func TestWhatWasNotHeardFromTheBackendIsSaidToBeOfThisClient(t *testing.T) {
	p := newPlace()
	held := func(err error) *driver.HeldError { return err.(*driver.HeldError) }
	first, second := p.enter(exclusive("x")), p.enter(exclusive("x"))
	if !held(second.Heard()).Local || !held(p.Tried(exclusive("x"))).Local {
		t.Error("nobody but the first here is known to be in the way")
	}
	first.Told(&driver.HeldError{Name: "x", Position: 1, Holders: 1}, false)
	if held(second.Heard()).Local || held(p.Tried(exclusive("x"))).Local {
		t.Error("the backend has said who holds it")
	}
	first.Told(&driver.HeldError{Name: "x", Position: 2}, false)
	if held(second.Heard()).Local {
		t.Error("the backend has said that somebody of another process is ahead")
	}
	p.grant("x", first, 1)
	if !held(second.Heard()).Local {
		t.Error("it is held here")
	}
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
