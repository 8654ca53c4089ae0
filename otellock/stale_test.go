package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/fence"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/otellock"
)

// The metrics contain the resource of a stale write only if the options ask for names.
func TestStaleWritesAreCounted(t *testing.T) {
	stale := &fence.StaleError{Resource: "accounts", Fence: 1, Highest: 2}
	for _, c := range []struct {
		names      bool
		err        error
		underLock  bool // the write is made under a lock
		attributes string
	}{
		{false, stale, true, ""},
		{true, stale, true, "pawl.resource=accounts"},
		{true, fmt.Errorf("guard: %w", pawl.ErrStale), true, ""},
		{true, fmt.Errorf("write: %w", stale), false, "pawl.resource=accounts"},
		{true, pawl.ErrStale, false, ""},
	} {
		fx := newFixture(t, false)
		ctx, span := fx.traces.Tracer("test").Start(t.Context(), "write")
		lease := mustGet(fx.b.Mutex("x").Lock(ctx))(t)
		if c.underLock {
			ctx = lease.Context()
		}
		o := &otellock.Options{MeterProvider: fx.meters, Names: c.names}
		if got := otellock.Stale(ctx, c.err, o); got != c.err {
			t.Errorf("Stale returned %v, want the error %v itself", got, c.err)
		}
		if otellock.Stale(ctx, nil, o) != nil || otellock.Stale(ctx, pawl.ErrHeld, o) == nil {
			t.Error("Stale changed an error that is not stale")
		}
		span.End()
		fx.want(fmt.Sprintf("pawl.stale.writes{%s} 1", c.attributes))
		if events := fx.spans.Ended()[0].Events(); len(events) != 1 || events[0].Name != "exception" {
			t.Errorf("the span has the events %v, want one exception", events)
		}
	}
}

func TestStaleWritesAreCountedByTheGlobalMeter(t *testing.T) {
	fx := newFixture(t, false)
	before := otel.GetMeterProvider()
	otel.SetMeterProvider(fx.meters)
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	if err := otellock.Stale(t.Context(), pawl.ErrStale, nil); !errors.Is(err, pawl.ErrStale) {
		t.Error(err)
	}
	fx.want("pawl.stale.writes{} 1")
}

// downBackend is a backend that fails.
type downBackend struct{ driver.Driver }

func (downBackend) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, errors.New("network down")
}

// An operation on a backend that is down is counted, and its span has an error.
func TestRequestsToADownBackendAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, false)
		observer := mustGet(otellock.New(&otellock.Options{MeterProvider: fx.meters, TracerProvider: fx.traces}))(t)
		locks := mustGet(pawl.New(downBackend{engine.Full(memlock.New(nil))}, &pawl.Options{Observer: observer}))(t)
		defer locks.Close()
		ctx, caller := fx.traces.Tracer("test").Start(t.Context(), "caller")
		defer caller.End()
		if _, err := locks.Mutex("x").TryLock(ctx); !errors.Is(err, pawl.ErrUnavailable) {
			t.Fatal(err)
		}
		fx.want("pawl.request.failures{pawl.op=acquire} 1", "pawl.wait.duration{pawl.outcome=unavailable} 1 times, 0 s")
		if ended := fx.spans.Ended(); len(ended) != 1 || ended[0].Name() != "pawl wait" || ended[0].Status().Code != codes.Error {
			t.Errorf("spans: %v", ended)
		}
	})
}
