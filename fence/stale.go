package fence

import (
	"fmt"
	"math"

	"github.com/pawl-go/pawl"
)

// StaleError refuses a write with an old fence. It matches [pawl.ErrStale].
type StaleError struct {
	Resource string
	Fence    uint64 // of the write that was refused
	Highest  uint64 // accepted before
}

// Is makes errors.Is(err, pawl.ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == pawl.ErrStale }

func (e *StaleError) Error() string {
	return fmt.Sprintf("pawl: stale: the fence %d for %q is below %d: its holder has lost the lock", e.Fence, e.Resource, e.Highest)
}

// MaxResource is how long the name of a resource may be, in bytes.
const MaxResource = 255

// validate refuses what is no fence of any lease: then somebody has forgotten to pass it.
func validate(resource string, fence uint64) error {
	switch {
	case resource == "" || len(resource) > MaxResource:
		return &pawl.InvalidError{What: "resource", Problem: fmt.Sprintf("has %d bytes", len(resource)), Allowed: fmt.Sprintf("1 to %d", MaxResource)}
	case fence == 0 || fence > math.MaxInt64: // what databases have
		return &pawl.InvalidError{What: "fence", Problem: fmt.Sprintf("is %d", fence), Allowed: "what Lease.Fence returned"}
	}
	return nil
}

// decide compares a fence with the highest, itself included.
func decide(resource string, fence, highest uint64) error {
	if fence < highest {
		return &StaleError{resource, fence, highest}
	}
	return nil
}
