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

// refusing is a backend whose password was changed after the opening.
type refusing struct{ driver.Driver }

func (refusing) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, &driver.Error{Backend: "redis host:6379", Op: "acquire", Err: errors.New("wrong password"), Permanent: true}
}

// Elect does not promise to try again when it ends.
func TestElectEndsOnAnErrorThatARetryCannotMend(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		e := &election{job: &job{v: &output{err: &said}, name: "x"}, terms: make(chan electionTerm)}
		e.open = func(context.Context) (*pawl.Client, error) {
			return pawl.New(refusing{engine.Full(memlock.New(nil))}, e.observe((&claimFlags{}).options(e.v, &location{v: e.v})))
		}
		e.acquire = func(context.Context, *pawl.Client) (jobLease, error) { return nil, nil }
		if err := e.run(); !codeIs(err, exitUnavailable) || said.Len() > 0 {
			t.Errorf("it ends with %v, and has said %q", err, said.String())
		}
	})
}
