package pawl_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
)

// believers are the leases of a name that their holders trust, with what each excludes.
type believers struct {
	mu     sync.Mutex
	leases []believer
}

// look fails the test if holders believe in leases that exclude each other at this
// moment.
func (b *believers) look(t *testing.T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leases = slices.DeleteFunc(b.leases, func(l believer) bool { return l.Err() != nil })
	slices.SortFunc(b.leases, func(l, m believer) int { return cmp.Compare(l.Fence(), m.Fence()) })
	sum := int64(0)
	for i, l := range b.leases { // in the order of their grants: each counts those before it
		if sum += int64(l.weight); sum > int64(l.limit) {
			t.Errorf("%d is held of %d: %v", sum, l.limit, b.leases)
		}
		if i > 0 && l.Fence() == b.leases[i-1].Fence() {
			t.Errorf("the same fence twice: %v", b.leases)
		}
	}
}

type believer struct {
	*pawl.Lease
	weight, limit int
}
