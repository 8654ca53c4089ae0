package localqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A queue with many waiters counts places in a tree. The tree must agree with a count.
func TestTheTreeAgreesWithACountOfPlaces(t *testing.T) {
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
