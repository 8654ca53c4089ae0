package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// A refusingDriver is a backend whose password has changed since it was opened.
type refusingDriver struct{ driver.Driver }

func (refusingDriver) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, &driver.Error{Backend: "redis host:6379", Op: "acquire", Err: errors.New("wrong password"), Permanent: true}
}

// Elect does not print that it tries again, because it ends.
func TestElectEndsOnAPermanentError(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var messages bytes.Buffer
		e := &election{job: &job{v: &output{err: &messages}, name: "x"}, terms: make(chan electionTerm)}
		e.open = func(context.Context) (*pawl.Client, error) {
			return pawl.New(refusingDriver{engine.Full(memlock.New(nil))}, e.observe((&claimFlags{}).options(e.v, &location{v: e.v})))
		}
		e.acquire = func(context.Context, *pawl.Client) (jobLease, error) { return nil, nil }
		if err := e.run(); !codeIs(err, exitUnavailable) || messages.Len() > 0 {
			t.Errorf("it ends with %v, and printed %q", err, messages.String())
		}
	})
}
