package engine

import (
	"errors"

	"github.com/pawl-go/pawl/driver"
)

// Failure turns an error of an engine's client into a [*driver.Error]. The hint comes
// from [CertificateHint], or otherwise from advice. It returns errors of that type, and
// driver.ErrClosed, as they are.
func Failure(err error, backend string, op driver.Op, advice func(error) (hint string, permanent bool)) error {
	if _, typed := errors.AsType[*driver.Error](err); err == nil || typed || errors.Is(err, driver.ErrClosed) {
		return err
	}
	hint, permanent := CertificateHint(err), false
	if hint == "" {
		hint, permanent = advice(err)
	}
	return &driver.Error{Backend: backend, Op: op, Hint: hint, Permanent: permanent, Err: err}
}
