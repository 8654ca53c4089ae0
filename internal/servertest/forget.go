package servertest

import "github.com/pawl-go/pawl/driver"

// Forgets calls erase, which deletes the entry of a held name or restores the entry from
// before the grant. The next renewal must notify the holder, and the next grant of the
// name must have a greater fence.
func Forgets(tb TB, holder, other driver.Driver, erase func()) {
	tb.Helper()
	c := Mutex("job")
	first := Gets(tb, holder, c)
	erase()
	IsLost(tb, holder, c)
	if g := acquireWhenFree(tb, other, Mutex("job")); g.Fence <= first.Fence {
		tb.Errorf("fence %d after %d", g.Fence, first.Fence)
	}
	IsLost(tb, holder, c)
}
