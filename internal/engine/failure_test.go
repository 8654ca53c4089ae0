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
	for _, passing := range []bool{false, true} {
		unfit := &engine.ConfigError{Problem: "it is off", Hint: "turn it on", Temporary: passing}
		e, typed := errors.AsType[*driver.Error](engine.Failure(fmt.Errorf("opening: %w", unfit), "redis x", "open", advice))
		if !typed || e.Hint != "turn it on" || e.Permanent == passing {
			t.Errorf("%+v", e)
		}
	}
}

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
