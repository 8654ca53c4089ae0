package engine_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

func TestAFailureIsTypedOnce(t *testing.T) {
	advice := func(err error) (string, bool) { return "look at " + err.Error(), true }
	err := engine.Failure(io.EOF, "redis x", "open", advice)
	e, typed := errors.AsType[*driver.Error](err)
	if !typed || *e != (driver.Error{Backend: "redis x", Op: "open", Hint: "look at EOF", Permanent: true, Err: io.EOF}) {
		t.Errorf("%#v", err)
	}
	for _, same := range []error{nil, driver.ErrClosed, err, fmt.Errorf("twice: %w", err)} {
		if got := engine.Failure(same, "nobody", "", advice); got != same {
			t.Errorf("%v became %v", same, got)
		}
	}
}
