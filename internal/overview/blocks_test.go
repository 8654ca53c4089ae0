package overview_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/overview"
)

// blocksOf returns the blocks of a script. Each of its elements is a name: the first
// digit is the process that holds the name, the others wait for it.
func blocksOf(t *testing.T, script []string) (found *overview.Blocks) {
	t.Helper()
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		for i, line := range script {
			name := fmt.Sprintf("n%d", i+1)
			for at, r := range line {
				pid := int(r - '0')
				switch {
				case at == 0:
					w.take(t, claim(name, pid))
				default:
					w.queue(t, claim(name, pid))
				}
				time.Sleep(time.Millisecond)
			}
		}
		found = w.Latest(t.Context(), 0).Blocks()
	})
	return found
}

func TestBlocksAndDeadlocksAreFound(t *testing.T) {
	for _, c := range []struct {
		script            []string
		blocks, deadlocks int
	}{
		{[]string{"1", "2"}, 0, 0},
		{[]string{"12"}, 0, 0},             // 2 holds nothing
		{[]string{"12", "2"}, 1, 0},        // 2 waits for 1
		{[]string{"12", "23", "3"}, 2, 0},  // a chain
		{[]string{"12", "21"}, 2, 1},       // a circle
		{[]string{"12", "23", "31"}, 3, 1}, // of three
		{[]string{"12", "21", "34", "43"}, 4, 2},
		{[]string{"21", "32", "13", "41", "34"}, 5, 2}, // 1 waits for 2 and 4, both for 3, and 3 for 1
		{[]string{"11", "1"}, 0, 0},                    // another goroutine of the same process
		{[]string{"122", "2"}, 1, 0},
	} {
		b := blocksOf(t, c.script)
		if len(b.All) != c.blocks || len(b.Deadlocks) != c.deadlocks {
			t.Errorf("%q: %+v, want %d blocks, %d deadlocks", c.script, b, c.blocks, c.deadlocks)
		}
		for _, circle := range b.Deadlocks {
			for i, x := range circle {
				if x.Holder != circle[(i+1)%len(circle)].Waiter {
					t.Errorf("%q: %+v is no circle", c.script, circle)
				}
			}
			if len(b.DeadlocksOf(circle[0].Name)) == 0 || len(b.Of(circle[0].Name)) == 0 {
				t.Errorf("%q: %q is not in %+v", c.script, circle[0].Name, b)
			}
		}
	}
}

// A name is in a deadlock if one of its waiters keeps its holder waiting, perhaps through
// other processes. A plain search finds that for each name.
func TestEachNameOfADeadlockIsInACircle(t *testing.T) {
	const processes = 6
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		script, waitsFor := make([]string, processes), [processes][processes]bool{}
		for holder := range processes {
			script[holder] = string(rune('0' + holder))
			for waiter := range processes {
				if waiter != holder && random.IntN(5) == 0 {
					script[holder] += string(rune('0' + waiter))
					waitsFor[waiter][holder] = true
				}
			}
		}
		reaches := waitsFor
		for via := range processes {
			for from := range processes {
				for to := range processes {
					reaches[from][to] = reaches[from][to] || reaches[from][via] && reaches[via][to]
				}
			}
		}
		found := blocksOf(t, script)
		for holder := range processes {
			want := false
			for waiter := range processes {
				want = want || waitsFor[waiter][holder] && reaches[holder][waiter]
			}
			name := fmt.Sprintf("n%d", holder+1)
			if got := len(found.DeadlocksOf(name)) > 0; got != want {
				t.Errorf("%q: %s is in a deadlock: %v, want %v", script, name, got, want)
			}
		}
	}
}

// Two processes use the two permits of one name, and wait for a third permit. They will
// get it.
func TestPermitsOfOneNameAreNoDeadlock(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		for i := range 4 {
			c := claim("gpu", i%2)
			c.Weight, c.Limit = 1, 2
			if i < 2 {
				w.take(t, c)
			} else {
				w.queue(t, c)
			}
		}
		if b := w.Latest(t.Context(), 0).Blocks(); len(b.All) != 0 {
			t.Errorf("the blocks are %+v, want none", b)
		}
	})
}

// 1 and 2 have the permits of gpu. 3 has disk, and waits for a permit. 1 waits for disk.
// When 2 gives its permit back, 3 continues, and then 1.
func TestAPermitThatOthersMayGiveBackIsNoDeadlock(t *testing.T) {
	for limit, deadlocks := range map[int]int{2: 0, 1: 1} {
		withFixture(t, nil, func(t *testing.T, w *fixture) {
			permit := func(pid int) driver.Claim {
				c := claim("gpu", pid)
				c.Weight, c.Limit = 1, limit
				return c
			}
			for pid := range limit {
				w.take(t, permit(1+pid))
			}
			w.take(t, claim("disk", 3))
			w.queue(t, permit(3))
			w.queue(t, claim("disk", 1))
			if b := w.Latest(t.Context(), 0).Blocks(); len(b.All) != 1+limit || len(b.Deadlocks) != deadlocks {
				t.Errorf("with %d permits: %+v, want %d deadlocks", limit, b, deadlocks)
			}
		})
	}
}

// 1 reads the catalog, and waits for disk. 3 has disk, and waits to read the catalog
// behind a writer. None of them can continue.
func TestAReaderBehindAWriterIsBlockedByReaders(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		reader := func(pid int) driver.Claim {
			c := claim("catalog", pid)
			c.Weight = 1
			return c
		}
		w.take(t, reader(1))
		w.take(t, claim("disk", 3))
		w.queue(t, claim("catalog", 2))
		w.queue(t, reader(3))
		w.queue(t, claim("disk", 1))
		if b := w.Latest(t.Context(), 0).Blocks(); len(b.Deadlocks) != 1 {
			t.Errorf("%+v, want a deadlock", b)
		}
	})
}

// Clients can create any number of blocks. The overview keeps 10 000.
func TestBlocksAreBounded(t *testing.T) {
	withFixture(t, nil, func(t *testing.T, w *fixture) {
		for i := range 150 {
			c := claim("catalog", 1+i)
			c.Weight = 1
			w.take(t, c)
			w.take(t, claim(fmt.Sprintf("own %03d", i), 1000+i))
		}
		for i := range 150 {
			w.queue(t, claim("catalog", 1000+i))
		}
		if b := w.Latest(t.Context(), 0).Blocks(); len(b.All) != 10_000 {
			t.Errorf("%d blocks, want 10 000", len(b.All))
		}
	})
}

func TestAProcessIsItsHostAndPid(t *testing.T) {
	for want, o := range map[string]driver.Owner{
		"host:7": {Client: "a", Host: "host", PID: 7},
		"a":      {Client: "a", Host: "host"},
		"host":   {Host: "host"},
	} {
		if got := overview.Process(o); got != want {
			t.Errorf("%+v is %q, want %q", o, got, want)
		}
	}
}
