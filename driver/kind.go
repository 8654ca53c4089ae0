package driver

import "fmt"

// Kind says in one word which other claims a claim excludes.
type Kind string

// The kinds of claims.
const (
	KindExclusive Kind = "exclusive" // excludes all other claims: a mutex, a writer
	KindShared    Kind = "shared"    // excludes claims that are not shared: a reader
	KindPermits   Kind = "permits"   // excludes claims that do not fit into its limit: a semaphore
)

// KindOf returns the kind of a claim with this weight and limit.
func KindOf(weight, limit int) Kind {
	switch {
	case weight == Exclusive:
		return KindExclusive
	case limit == Unlimited:
		return KindShared
	}
	return KindPermits
}

// Kind returns the kind of the lease.
func (h Holder) Kind() Kind { return KindOf(h.Permits, h.Limit) }

// Kind returns the kind of the claim.
func (w Waiter) Kind() Kind { return KindOf(w.Permits, w.Limit) }

// kindNote returns the kind of a lease and a comma, for an error. It is empty for an
// exclusive lease, the usual kind, and for an unknown limit.
func (h Holder) kindNote() string {
	if h.Limit == 0 {
		return ""
	}
	switch h.Kind() {
	case KindExclusive:
	case KindShared:
		return "shared, "
	case KindPermits:
		return fmt.Sprintf("%d of %d permits, ", h.Permits, h.Limit)
	}
	return ""
}
