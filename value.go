package pawl

import (
	"context"

	"github.com/pawl-go/pawl/driver"
)

// WithValue makes the name keep a value of at most 1 KB, such as a leader's address or
// the last tick of a schedule. The step that grants the lock writes the value. The name
// keeps the value, even when no client holds the name, until a later holder writes
// another. By default the backend forgets name and value a day after the end of the last
// lease. Inspect shows the value.
//
// A lock with a value is not passed among the waiters of one process (see
// Options.HandoffWindow): the backend makes each grant.
func WithValue(value []byte) LockOption {
	return grantOption("WithValue", func(o *lockOptions) { o.value = cloneValue(value) })
}

// WithValueBelow makes the grant depend on the value that the name keeps: the name must
// keep no value, or a smaller one, compared as bytes. Otherwise the error matches
// ErrValueNotBelow. The backend compares and grants in one step. So if [WithValue] has
// the same value, one holder writes it, and only once. For a waiter, the backend compares
// when the waiter's turn comes, and maybe also earlier.
func WithValueBelow(value []byte) LockOption {
	return grantOption("WithValueBelow", func(o *lockOptions) { o.valueBelow = cloneValue(value) })
}

// cloneValue returns a copy that is never nil, because nil means no value to the driver.
func cloneValue(value []byte) []byte { return append([]byte{}, value...) }

// SetValue makes the name keep another value, at most 1 KB, and renews the lease. Only a
// holder can write a name's value. See [WithValue].
//
// ctx bounds the call. The error matches ErrLost or ErrReleased if the lease is over;
// then nothing is written. It matches ErrUnavailable, or ctx's own error, if it is not
// known whether the value was written. The next SetValue of this lease then waits until
// the unanswered write can no longer reach the backend, so that an earlier value never
// overwrites a later one.
func (l *Lease) SetValue(ctx context.Context, value []byte) error {
	value = cloneValue(value)
	if err := driver.ValidateValue(value); err != nil {
		return err
	}
	return l.renewAlone(ctx, "write the value of", value)
}
