package fence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// StaleError means that a check refused an old fence. It matches [pawl.ErrStale].
type StaleError struct {
	Resource string
	Fence    uint64 // the refused fence
	Highest  uint64 // the highest accepted fence; at most Fence if the check knows only that the lease has ended
}

// Is makes errors.Is(err, pawl.ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == pawl.ErrStale }

func (e *StaleError) Error() string {
	if e.Highest <= e.Fence {
		return fmt.Sprintf("pawl: stale: the lease with the fence %d does not hold %q any more", e.Fence, e.Resource)
	}
	return fmt.Sprintf("pawl: stale: the fence %d for %q is below %d: its holder has lost the lock", e.Fence, e.Resource, e.Highest)
}

// Compare refuses a fence below the highest one that a store knows for a resource with a
// [*StaleError], and an invalid fence with a [*pawl.InvalidError]. It is for stores that
// this package does not support: such a store must compare, remember the higher fence and
// write in one step. highest is 0 if the store has no fence.
func Compare(resource string, fence, highest uint64) error {
	if err := validate(resource, fence); err != nil {
		return err
	}
	return checkNotBelow(resource, fence, highest)
}

// MaxResource is the greatest length of a resource's name, in bytes. The name has the
// form of a lock's name: UTF-8 without control characters.
const MaxResource = driver.MaxName

// validate refuses invalid fences, and resources that some store cannot store. If a
// database refused them instead, it would abort the caller's transaction.
func validate(resource string, fence uint64) error {
	if err := driver.ValidateName(resource); err != nil {
		if invalid, ok := errors.AsType[*driver.InvalidError](err); ok {
			invalid.Argument = "resource"
		}
		return err
	}
	return validateFence(fence)
}

func validateFence(fence uint64) error {
	switch {
	case fence == 0:
		return &pawl.InvalidError{
			Argument: "fence", Problem: "is 0, which FenceOf returns without a lease on that name",
			Allowed: "what Lease.Fence returned",
		}
	case fence > math.MaxInt64: // the range of integers in databases
		return &pawl.InvalidError{Argument: "fence", Problem: fmt.Sprintf("is %d", fence), Allowed: "what Lease.Fence returned"}
	}
	return nil
}

// checkNotNil refuses a nil ctx, and an argument that is a nil pointer or function.
func checkNotNil(ctx context.Context, argument string, value any) error {
	if ctx == nil {
		return &pawl.InvalidError{Argument: "ctx", Problem: "is nil", Allowed: "a context"}
	}
	if v := reflect.ValueOf(value); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return &pawl.InvalidError{Argument: argument, Problem: "is nil", Allowed: "the caller's own"}
	}
	return nil
}

// checkNotBelow refuses a fence below the highest.
func checkNotBelow(resource string, fence, highest uint64) error {
	if fence < highest {
		return &StaleError{resource, fence, highest}
	}
	return nil
}

// backendError returns the error of a store that failed, or whose value is no fence.
func backendError(store string, op pawl.Op, resource string, err error) *pawl.BackendError {
	return &pawl.BackendError{Backend: store, Op: op, Name: resource, Err: err}
}
