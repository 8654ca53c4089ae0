package pawltest

import (
	"context"

	"github.com/pawl-go/pawl"
)

// AssertHeld fails the test unless the name is held. name is as it is stored; see
// [pawl.Client.StoredName]. In a bubble, call synctest.Wait before an Assert method, so
// that all other goroutines are blocked.
func (b *Backend) AssertHeld(name string) {
	b.t.Helper()
	if e := b.entry(name); countHeld(&e) == 0 {
		b.t.Errorf("pawltest: %s; want it held", describe(&e))
	}
}

// AssertHolders fails the test unless n leases are held on the name. Permits that were
// acquired together are one lease.
func (b *Backend) AssertHolders(name string, n int) {
	b.t.Helper()
	if e := b.entry(name); countHeld(&e) != n {
		b.t.Errorf("pawltest: %s; want %d holders", describe(&e), n)
	}
}

// AssertFree fails the test unless a lock of the name would be granted at once: the name
// is not held, waited for or closed.
func (b *Backend) AssertFree(name string) {
	b.t.Helper()
	if e := b.entry(name); len(e.Holders) > 0 || len(e.Waiters) > 0 || e.ClosedFor > 0 {
		b.t.Errorf("pawltest: %s; want it free", describe(&e))
	}
}

// AssertWaiting fails the test unless n claims wait for the name in the backend's queue.
// A client queues one claim on a mutex there; its others wait behind it, in the process.
func (b *Backend) AssertWaiting(name string, n int) {
	b.t.Helper()
	if e := b.entry(name); len(e.Waiters) != n {
		b.t.Errorf("pawltest: %s; want %d to wait", describe(&e), n)
	}
}

// countHeld counts the leases, without those that only a minimum hold keeps.
func countHeld(e *pawl.Entry) (n int) {
	for _, h := range e.Holders {
		if !h.Released {
			n++
		}
	}
	return n
}

func (b *Backend) entry(name string) pawl.Entry {
	b.t.Helper()
	e, err := b.driver.Inspect(context.Background(), name)
	if err != nil {
		b.t.Errorf("pawltest: read %q: %v", name, err)
	}
	e.Name = name
	return e
}
