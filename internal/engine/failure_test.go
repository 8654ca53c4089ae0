package engine_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
)

// A ConfigError has its own hint, and may be temporary.
func TestAConfigErrorHasItsOwnHint(t *testing.T) {
	advice := func(error) (string, bool) { return "look elsewhere", false }
	for _, temporary := range []bool{false, true} {
		config := &engine.ConfigError{Problem: "it is off", Hint: "turn it on", Temporary: temporary}
		e, typed := errors.AsType[*driver.Error](engine.Failure(fmt.Errorf("opening: %w", config), "redis x", "open", advice))
		if !typed || e.Hint != "turn it on" || e.Permanent == temporary {
			t.Errorf("Failure returns %+v", e)
		}
	}
}

func TestFailureConvertsAnErrorOnce(t *testing.T) {
	advice := func(err error) (string, bool) { return "look at " + err.Error(), true }
	err := engine.Failure(io.EOF, "redis x", "open", advice)
	e, typed := errors.AsType[*driver.Error](err)
	if !typed || *e != (driver.Error{Backend: "redis x", Op: "open", Hint: "look at EOF", Permanent: true, Err: io.EOF}) {
		t.Errorf("Failure returns %#v", err)
	}
	for _, same := range []error{nil, driver.ErrClosed, err, fmt.Errorf("twice: %w", err)} {
		if got := engine.Failure(same, "nobody", "", advice); got != same {
			t.Errorf("%v became %v", same, got)
		}
	}
}
