package pawltest

import (
	"context"

	"github.com/pawl-go/pawl"
)

// AssertHeld fails the test unless somebody holds the name. In a bubble, call
// synctest.Wait before this and its kin if a goroutine is to have come so far. name is as
// it is stored; see [pawl.Client.StoredName].
func (b *Backend) AssertHeld(name string) {
	b.t.Helper()
	if e := b.entry(name); held(&e) == 0 {
		b.t.Errorf("pawltest: %s; want it held", describe(&e))
	}
}

// AssertHolders fails the test unless n leases are held on the name: readers, permits
// that were acquired together, or one.
func (b *Backend) AssertHolders(name string, n int) {
	b.t.Helper()
	if e := b.entry(name); held(&e) != n {
		b.t.Errorf("pawltest: %s; want %d holders", describe(&e), n)
	}
}

// AssertFree fails the test unless a lock of the name would be granted at once: nobody
// holds it or waits for it, and it is not closed.
func (b *Backend) AssertFree(name string) {
	b.t.Helper()
	if e := b.entry(name); len(e.Holders) > 0 || len(e.Waiters) > 0 || e.ClosedFor > 0 {
		b.t.Errorf("pawltest: %s; want it free", describe(&e))
	}
}

// AssertWaiting fails the test unless n claims wait for the name in the backend's queue.
// Of one client the first is there, and the others wait behind it in the process.
func (b *Backend) AssertWaiting(name string, n int) {
	b.t.Helper()
	if e := b.entry(name); len(e.Waiters) != n {
		b.t.Errorf("pawltest: %s; want %d to wait", describe(&e), n)
	}
}

// held counts who holds it, and not what a minimum hold keeps.
func held(e *pawl.Entry) (n int) {
	for _, h := range e.Holders {
		if !h.Released {
			n++
		}
	}
	return n
}

func (b *Backend) entry(name string) pawl.Entry {
	b.t.Helper()
	e, err := b.look.Inspect(context.Background(), name)
	if err != nil {
		b.t.Errorf("pawltest: read %q: %v", name, err)
	}
	e.Name = name
	return e
}
