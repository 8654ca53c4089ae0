package servertest

import "github.com/pawl-go/pawl/driver"

// Forgets has the server lose what it stored of a held name: erase deletes it, or
// restores what was there before the grant. Each renewal notifies the holder, and the
// name is granted again, with a greater fence.
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
