// Package otellock reports the events of a client's locks to OpenTelemetry: as metrics,
// for graphs and alerts in Prometheus and others, and as spans.
//
//	o, err := otellock.New(nil)
//	locks, err := pawl.Open(ctx, url, &pawl.Options{Observer: o})
//
// # Metrics
//
//   - pawl.wait.duration (s): how long claims waited, by "pawl.outcome": acquired, held
//     (a try of a held lock), gave_up, unavailable, invalid, closed, done (a tick that
//     was done before).
//   - pawl.hold.duration (s): how long leases were held, by "pawl.outcome": released,
//     lost, detached.
//   - pawl.waiting and pawl.held: how many claims wait, and how many leases are held.
//   - pawl.lost: leases that were lost, by "pawl.reason": expired, unreachable, broken,
//     max_hold, closed, unhealthy.
//   - pawl.request.failures: requests to the backend that failed, by "pawl.op": acquire,
//     renew, release.
//   - pawl.stale.writes: refused writes that the application reports with [Stale].
//
// The names of locks are an attribute, "pawl.name", only with [Options.Names]: many
// names, such as a lock per order, would make as many time series. Without names the
// counters begin at 0, so that an alert sees the first lost lease. With names a counter
// begins with the first event of its name.
//
// # Prometheus and Grafana
//
// OpenTelemetry's exporter for Prometheus turns pawl.wait.duration into
// pawl_wait_duration_seconds_bucket, pawl.lost into pawl_lost_total, and so on. In this
// folder, grafana.json is a dashboard for Grafana, and alerts.yaml has alerts for
// Prometheus; both are tested with real exports.
//
// # Spans
//
// If the caller's span is sampled, there are two more spans. "pawl wait" is the time from
// the call to its answer, and a child of the caller's span. "pawl hold" is the time of
// the lease. It may outlast the caller, so it begins a new trace, linked to the caller's
// span. Both have the name of the lock and, after a grant, the fence.
//
// # What does it cost?
//
// Metrics cost about 3 % of a cycle on Redis. The events are queued, and measured many at
// a time, at the latest when the metrics are read. A traced cycle makes two spans, which
// cost what spans of OpenTelemetry cost. docs/internals/benchmarks.md has the numbers.
package otellock

import (
	"context"
	"errors"
	"runtime"
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
	MeterProvider  metric.MeterProvider // default: OpenTelemetry's global one
	TracerProvider trace.TracerProvider // default: OpenTelemetry's global one

	// Names adds the names of locks to metrics, as the attribute "pawl.name". Spans
	// always have them.
	Names bool
}

func (o *Options) withDefaults() (out Options) {
	if o != nil {
		out = *o
	}
	if out.MeterProvider == nil {
		out.MeterProvider = otel.GetMeterProvider()
	}
	if out.TracerProvider == nil {
		out.TracerProvider = otel.GetTracerProvider()
	}
	return out
}

const scope = "github.com/pawl-go/pawl/otellock"

// New makes an observer, for one client or several; [pawl.JoinObservers] joins it with
// other observers. o may be nil. The error is OpenTelemetry's.
func New(o *Options) (*pawl.Observer, error) {
	t := &observer{o: o.withDefaults()}
	t.tracer = t.o.TracerProvider.Tracer(scope)
	var err error
	if t.instruments, err = newInstruments(t.o.MeterProvider.Meter(scope), t.o.Names); err != nil {
		return nil, err
	}
	runtime.AddCleanup(t, (*instruments).close, t.instruments)
	return &pawl.Observer{
		Queued: t.queued, NotAcquired: t.notAcquired, Acquired: t.acquired, Released: t.released, Lost: t.lost, Failed: t.failed,
	}, nil
}

// An observer reports the events of the clients that share it.
type observer struct {
	o      Options
	tracer trace.Tracer
	*instruments

	queue sync.Map // the waiting claims, by Event.Claim
	spans sync.Map // the traced leases: trace.Span by Event.Claim
}

func (t *observer) queued(e pawl.QueuedEvent) {
	if _, before := t.queue.LoadOrStore(e.Claim, struct{}{}); !before {
		t.record(measurement{name: e.Name}, 1, 0)
	}
}

// claimEnded records the end of a claim, and the duration of its wait.
func (t *observer) claimEnded(e pawl.Event, waited time.Duration, outcome string, held int64) {
	waiting := int64(0)
	if _, queued := t.queue.LoadAndDelete(e.Claim); queued {
		waiting = -1
	}
	t.record(measurement{t.wait, e.Ctx, e.Name, outcome, waited.Seconds()}, waiting, held)
}

// waitSpan makes a span for a wait that is over, or returns nil if the caller is not
// traced.
func (t *observer) waitSpan(e pawl.Event, waited time.Duration) trace.Span {
	if !trace.SpanContextFromContext(e.Ctx).IsSampled() {
		return nil
	}
	_, span := t.tracer.Start(e.Ctx, "pawl wait", trace.WithTimestamp(time.Now().Add(-waited)),
		trace.WithAttributes(attribute.String(nameKey, e.Name)))
	return span
}

func (t *observer) notAcquired(e pawl.NotAcquiredEvent) {
	outcome := outcomeOf(e.Err)
	t.claimEnded(e.Event, e.Waited, outcome, 0)
	span := t.waitSpan(e.Event, e.Waited)
	if span == nil {
		return
	}
	span.SetAttributes(attribute.String(outcomeKey, outcome))
	if outcome != "held" && outcome != "done" { // a skipped run is no error
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
	case errors.Is(err, pawl.ErrValueNotBelow):
		return "done"
	case errors.Is(err, pawl.ErrClosed):
		return "closed"
	case errors.Is(err, pawl.ErrInvalid):
		return "invalid"
	}
	return "unavailable"
}

func (t *observer) acquired(e pawl.AcquiredEvent) {
	t.claimEnded(e.Event, e.Waited, "acquired", 1)
	wait := t.waitSpan(e.Event, e.Waited)
	if wait == nil {
		return
	}
	fence := attribute.Int64("pawl.fence", int64(e.Lease.Fence()))
	wait.SetAttributes(fence)
	wait.End()
	_, hold := t.tracer.Start(e.Ctx, "pawl hold", trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(e.Ctx)),
		trace.WithAttributes(attribute.String(nameKey, e.Name), fence))
	if hold.IsRecording() {
		t.spans.Store(e.Claim, hold)
	}
}

// leaseEnded records the end of a lease, and the duration for which it was held.
func (t *observer) leaseEnded(e pawl.Event, held time.Duration, outcome string, err error) {
	t.record(measurement{t.hold, e.Ctx, e.Name, outcome, held.Seconds()}, 0, -1)
	if span, ok := t.spans.LoadAndDelete(e.Claim); ok {
		span := span.(trace.Span) //nolint:forcetypeassert // nothing else is stored there
		span.SetAttributes(attribute.String(outcomeKey, outcome))
		if err != nil && outcome != "detached" {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func (t *observer) released(e pawl.ReleasedEvent) {
	outcome := "released"
	if errors.Is(e.Err, pawl.ErrDetached) {
		outcome = "detached"
	}
	t.leaseEnded(e.Event, e.Held, outcome, e.Err)
}

func (t *observer) lost(e pawl.LostEvent) {
	t.leaseEnded(e.Event, e.Held, "lost", e.Err)
	t.losses.Add(e.Ctx, 1, t.attributesFor(e.Name, reasonKey, reasons[e.Err.Reason]))
}

func (t *observer) failed(e pawl.FailedEvent) {
	t.failures.Add(e.Ctx, 1, t.attributesFor(e.Name, opKey, string(e.Op)))
}
