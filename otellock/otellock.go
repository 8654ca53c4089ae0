// Package otellock tells OpenTelemetry what happens to a client's locks: as metrics, from
// which Prometheus and others make graphs and alarms, and as spans.
//
//	o, err := otellock.New(nil)
//	locks, err := pawl.Open(ctx, url, &pawl.Options{Observer: o})
//
// # Metrics
//
//   - pawl.wait.duration (s): how long claims waited, by "outcome": acquired, held (a
//     try that was skipped), gave_up, unavailable, invalid, closed, done (a tick that was
//     done before).
//   - pawl.hold.duration (s): how long leases were held, by "outcome": released, lost,
//     detached.
//   - pawl.waiting and pawl.held: how many claims wait, and how many leases are held.
//   - pawl.lost: leases that were lost, by "reason": expired, unreachable, broken,
//     max_hold, closed, unhealthy.
//   - pawl.request.failures: requests to the backend that failed, by "op": acquire,
//     renew, release.
//   - pawl.stale.writes: writes that were refused, where the application tells: [Stale].
//
// Names of locks are an attribute, "pawl.name", only with [Options.Names]: names that are
// many, a lock per order say, would make as many time series.
//
// # Spans
//
// "pawl wait" is the time from the call to the grant, and a child of the caller's span.
// "pawl hold" is the time of the lease, which may last longer than the caller: it begins
// a trace of its own, linked to the caller's span. Both have the name of the lock, and
// the fence.
package otellock

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
)

// Options configure an observer. The zero value and nil work.
type Options struct {
	Meters metric.MeterProvider // default: OpenTelemetry's global one
	Traces trace.TracerProvider // default: OpenTelemetry's global one

	// Names adds the names of locks to metrics, as the attribute "pawl.name". Spans have
	// them anyway.
	Names bool

	// Next is told too, so that one client can have several observers. Default: none.
	Next *pawl.Observer
}

const scope = "github.com/pawl-go/pawl/otellock"

// New makes an observer. o may be nil. The error is OpenTelemetry's.
func New(o *Options) (*pawl.Observer, error) {
	t := &teller{}
	if o != nil {
		t.o = *o
	}
	if t.o.Meters == nil {
		t.o.Meters = otel.GetMeterProvider()
	}
	if t.o.Traces == nil {
		t.o.Traces = otel.GetTracerProvider()
	}
	t.tracer = t.o.Traces.Tracer(scope)
	if err := t.instruments(t.o.Meters.Meter(scope)); err != nil {
		return nil, err
	}
	return both(&pawl.Observer{
		Queued: t.queued, Refused: t.refused, Acquired: t.acquired, Released: t.released, Lost: t.lost, Failed: t.failed,
	}, t.o.Next), nil
}

// A teller is one observer.
type teller struct {
	o      Options
	tracer trace.Tracer

	wait, hold       metric.Float64Histogram
	waiting, held    metric.Int64UpDownCounter
	losses, failures metric.Int64Counter

	queue sync.Map // of claims that wait: by Event.Claim
	spans sync.Map // of leases that are held: trace.Span by Event.Claim
}

// waits and holds are from a try that is answered at once to a job of a day.
var (
	waits = metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300)
	holds = metric.WithExplicitBucketBoundaries(.001, .01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400)
)

func (t *teller) instruments(m metric.Meter) error {
	var errs [6]error
	t.wait, errs[0] = m.Float64Histogram("pawl.wait.duration", metric.WithUnit("s"), metric.WithDescription("How long claims waited."), waits)
	t.hold, errs[1] = m.Float64Histogram("pawl.hold.duration", metric.WithUnit("s"), metric.WithDescription("How long leases were held."), holds)
	t.waiting, errs[2] = m.Int64UpDownCounter("pawl.waiting", metric.WithUnit("{claim}"), metric.WithDescription("Claims that wait."))
	t.held, errs[3] = m.Int64UpDownCounter("pawl.held", metric.WithUnit("{lease}"), metric.WithDescription("Leases that are held."))
	t.losses, errs[4] = m.Int64Counter("pawl.lost", metric.WithUnit("{lease}"), metric.WithDescription("Leases that were lost."))
	t.failures, errs[5] = m.Int64Counter("pawl.request.failures", metric.WithUnit("{request}"), metric.WithDescription("Requests to the backend that failed."))
	return errors.Join(errs[:]...)
}

// attributes are those of a measurement.
func (t *teller) attributes(name string, more ...attribute.KeyValue) metric.MeasurementOption {
	if t.o.Names {
		more = append(more, attribute.String("pawl.name", name))
	}
	return metric.WithAttributeSet(attribute.NewSet(more...))
}

func (t *teller) queued(e pawl.QueuedEvent) {
	if _, before := t.queue.LoadOrStore(e.Claim, struct{}{}); !before {
		t.waiting.Add(e.Ctx, 1, t.attributes(e.Name))
	}
}

// answered is when a claim has waited so long.
func (t *teller) answered(e pawl.Event, waited time.Duration, outcome string) {
	if _, queued := t.queue.LoadAndDelete(e.Claim); queued {
		t.waiting.Add(e.Ctx, -1, t.attributes(e.Name))
	}
	t.wait.Record(e.Ctx, waited.Seconds(), t.attributes(e.Name, attribute.String("outcome", outcome)))
}

// waitSpan is over when it is made.
func (t *teller) waitSpan(e pawl.Event, waited time.Duration) trace.Span {
	_, span := t.tracer.Start(e.Ctx, "pawl wait", trace.WithTimestamp(time.Now().Add(-waited)),
		trace.WithAttributes(attribute.String("pawl.name", e.Name)))
	return span
}

func (t *teller) refused(e pawl.RefusedEvent) {
	outcome := outcomeOf(e.Err)
	t.answered(e.Event, e.Waited, outcome)
	span := t.waitSpan(e.Event, e.Waited)
	span.SetAttributes(attribute.String("pawl.outcome", outcome))
	if outcome != "held" && outcome != "done" { // to be skipped is no error
		span.SetStatus(codes.Error, e.Err.Error())
	}
	span.End()
}

func outcomeOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "gave_up"
	case errors.Is(err, pawl.ErrHeld):
		return "held"
	case errors.Is(err, pawl.ErrValue):
		return "done"
	case errors.Is(err, pawl.ErrClosed):
		return "closed"
	case errors.Is(err, pawl.ErrInvalid):
		return "invalid"
	}
	return "unavailable"
}

func (t *teller) acquired(e pawl.AcquiredEvent) {
	t.answered(e.Event, e.Waited, "acquired")
	t.held.Add(e.Ctx, 1, t.attributes(e.Name))
	fence := attribute.Int64("pawl.fence", int64(e.Lease.Fence()))
	span := t.waitSpan(e.Event, e.Waited)
	span.SetAttributes(fence)
	span.End()
	_, hold := t.tracer.Start(e.Ctx, "pawl hold", trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(e.Ctx)),
		trace.WithAttributes(attribute.String("pawl.name", e.Name), fence))
	t.spans.Store(e.Claim, hold)
}

// over is when a lease was held so long.
func (t *teller) over(e pawl.Event, held time.Duration, outcome string, err error) {
	t.held.Add(e.Ctx, -1, t.attributes(e.Name))
	t.hold.Record(e.Ctx, held.Seconds(), t.attributes(e.Name, attribute.String("outcome", outcome)))
	if span, ok := t.spans.LoadAndDelete(e.Claim); ok {
		span := span.(trace.Span) //nolint:forcetypeassert // nothing else is stored there
		span.SetAttributes(attribute.String("pawl.outcome", outcome))
		if err != nil && outcome != "detached" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func (t *teller) released(e pawl.ReleasedEvent) {
	outcome := "released"
	if errors.Is(e.Err, pawl.ErrDetached) {
		outcome = "detached"
	}
	t.over(e.Event, e.Held, outcome, e.Err)
}

var reasons = map[pawl.Reason]string{
	pawl.ReasonExpired: "expired", pawl.ReasonUnreachable: "unreachable", pawl.ReasonBroken: "broken",
	pawl.ReasonMaxHold: "max_hold", pawl.ReasonClosed: "closed", pawl.ReasonUnhealthy: "unhealthy",
}

func (t *teller) lost(e pawl.LostEvent) {
	t.over(e.Event, e.Held, "lost", e.Err)
	t.losses.Add(e.Ctx, 1, t.attributes(e.Name, attribute.String("reason", reasons[e.Err.Reason])))
}

func (t *teller) failed(e pawl.FailedEvent) {
	t.failures.Add(e.Ctx, 1, t.attributes(e.Name, attribute.String("op", e.Op)))
}
