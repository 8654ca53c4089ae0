package servertest

import "github.com/pawl-go/pawl/driver"

// Forgets makes the server lose the entry of a held name: erase deletes it, or restores
// the entry from before the grant. The next renewal notifies the holder, and the name is
// granted again, with a greater fence.
func Forgets(tb TB, holder, other driver.Driver, erase func()) {
	tb.Helper()
	c := Mutex("job")
	first := Gets(tb, holder, c)
	erase()
	IsLost(tb, holder, c)
	if g := untilFree(tb, other, Mutex("job")); g.Fence <= first.Fence {
		tb.Errorf("fence %d after %d", g.Fence, first.Fence)
	}
	IsLost(tb, holder, c)
}
