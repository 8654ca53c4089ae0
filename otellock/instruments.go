package otellock

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-go/pawl"
)

// The keys of the attributes, of metrics and of spans.
const (
	nameKey    = "pawl.name"
	outcomeKey = "pawl.outcome"
	reasonKey  = "pawl.reason"
	opKey      = "pawl.op"
)

// The values of the attributes.
var (
	outcomes = []string{"acquired", "held", "gave_up", "unavailable", "invalid", "closed", "done", "released", "lost", "detached"}
	reasons  = map[pawl.Reason]string{
		pawl.ReasonExpired: "expired", pawl.ReasonUnreachable: "unreachable", pawl.ReasonBroken: "broken",
		pawl.ReasonMaxHold: "max_hold", pawl.ReasonClosed: "closed", pawl.ReasonUnhealthy: "unhealthy",
	}
	ops = []string{"acquire", "renew", "release"}
)

// The bounds suit both a try that returns at once and a job of a day.
var (
	waitBounds = metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300)
	holdBounds = metric.WithExplicitBucketBoundaries(.001, .01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400)
)

// instruments are the instruments and the counts of an observer.
//
// Measuring is slow compared with a cycle on Redis, mostly because OpenTelemetry's code
// is not in the processor's cache then. So a goroutine that locks only queues a
// measurement. The queued ones are recorded many at a time, or when the metrics are read.
type instruments struct {
	wait, hold       metric.Float64Histogram
	waiting, held    metric.Int64ObservableUpDownCounter
	losses, failures metric.Int64Counter

	names              bool
	preparedAttributes map[label]metric.MeasurementOption // the attributes; empty with Names
	registration       metric.Registration

	mu      sync.Mutex         // protects all below
	counts  map[string]*counts // by name; without Names, only ""
	pending []measurement
}

// counts are the current numbers of a name's waiting claims and held leases.
type counts struct{ waiting, held int64 }

// A measurement is a duration to be recorded in a histogram later.
type measurement struct {
	histogram metric.Float64Histogram
	ctx       context.Context // has the caller's span, for an exemplar, if it is sampled; otherwise nil
	name      string
	outcome   string
	seconds   float64
}

const (
	maxPending   = 64   // the number of measurements that are recorded at once
	maxIdleNames = 1000 // beyond this number, names without a holder or waiter are dropped
)

func newInstruments(m metric.Meter, names bool) (*instruments, error) {
	i := &instruments{names: names, preparedAttributes: map[label]metric.MeasurementOption{}, counts: map[string]*counts{}}
	var stale metric.Int64Counter
	var errs [7]error
	i.wait, errs[0] = m.Float64Histogram("pawl.wait.duration", metric.WithUnit("s"), metric.WithDescription("How long claims waited."), waitBounds)
	i.hold, errs[1] = m.Float64Histogram("pawl.hold.duration", metric.WithUnit("s"), metric.WithDescription("How long leases were held."), holdBounds)
	i.waiting, errs[2] = m.Int64ObservableUpDownCounter("pawl.waiting", metric.WithUnit("{claim}"), metric.WithDescription("Claims that wait."))
	i.held, errs[3] = m.Int64ObservableUpDownCounter("pawl.held", metric.WithUnit("{lease}"), metric.WithDescription("Leases that are held."))
	i.losses, errs[4] = m.Int64Counter("pawl.lost", metric.WithUnit("{lease}"), metric.WithDescription("Leases that were lost."))
	i.failures, errs[5] = m.Int64Counter("pawl.request.failures", metric.WithUnit("{request}"), metric.WithDescription("Requests to the backend that failed."))
	stale, errs[6] = staleWrites(m)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if !names {
		i.counts[""] = &counts{}
		i.prepareAttributes(stale)
	}
	var err error
	i.registration, err = m.RegisterCallback(i.observeCounts, i.waiting, i.held)
	return i, err
}

func staleWrites(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("pawl.stale.writes", metric.WithUnit("{write}"),
		metric.WithDescription("Writes that were refused, because their fence was stale."))
}

// prepareAttributes makes all attributes, and starts the counters at 0. A counter that
// appears with its first event has no rate then, so an alert would miss the first loss.
func (i *instruments) prepareAttributes(stale metric.Int64Counter) {
	ctx := context.Background()
	prepareLabel := func(key, value string) metric.MeasurementOption {
		attributes := i.attributesFor("", key, value)
		i.preparedAttributes[label{key, value}] = attributes
		return attributes
	}
	stale.Add(ctx, 0, prepareLabel("", ""))
	for _, reason := range reasons {
		i.losses.Add(ctx, 0, prepareLabel(reasonKey, reason))
	}
	for _, op := range ops {
		i.failures.Add(ctx, 0, prepareLabel(opKey, op))
	}
	for _, outcome := range outcomes {
		prepareLabel(outcomeKey, outcome)
	}
}

// record records a duration, and the changes in the numbers of waiters and leases.
// n.histogram may be nil.
func (i *instruments) record(n measurement, waiting, held int64) {
	if !i.names {
		n.name = ""
	}
	if n.ctx != nil && !trace.SpanContextFromContext(n.ctx).IsSampled() {
		n.ctx = nil
	}
	i.mu.Lock()
	c := i.counts[n.name]
	if c == nil {
		c = &counts{}
		i.counts[n.name] = c
	}
	c.waiting += waiting
	c.held += held
	if *c == (counts{}) && len(i.counts) > maxIdleNames {
		delete(i.counts, n.name)
	}
	if n.histogram != nil {
		i.pending = append(i.pending, n)
	}
	var batch []measurement
	if len(i.pending) == maxPending {
		batch = i.takePendingLocked()
	}
	i.mu.Unlock()
	i.recordBatch(batch)
}

// takePendingLocked takes the measurements, to record them without the mutex.
func (i *instruments) takePendingLocked() []measurement {
	batch := i.pending
	i.pending = make([]measurement, 0, maxPending)
	return batch
}

func (i *instruments) recordBatch(batch []measurement) {
	for _, n := range batch {
		ctx := n.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		n.histogram.Record(ctx, n.seconds, i.attributesFor(n.name, outcomeKey, n.outcome))
	}
}

// observeCounts is OpenTelemetry's callback when the metrics are read.
func (i *instruments) observeCounts(_ context.Context, o metric.Observer) error {
	i.mu.Lock()
	batch := i.takePendingLocked()
	now := make(map[string]counts, len(i.counts))
	for name, c := range i.counts {
		now[name] = *c
	}
	i.mu.Unlock()
	i.recordBatch(batch)
	for name, c := range now {
		l := i.attributesFor(name, "", "")
		o.ObserveInt64(i.waiting, c.waiting, l)
		o.ObserveInt64(i.held, c.held, l)
	}
	return nil
}

// close releases the instruments when no client uses the observer any more.
func (i *instruments) close() {
	i.mu.Lock()
	batch := i.takePendingLocked()
	i.mu.Unlock()
	i.recordBatch(batch)
	if err := i.registration.Unregister(); err != nil {
		otel.Handle(err)
	}
}

// A label is an attribute of a measurement, besides the name.
type label struct{ key, value string }

// attributesFor returns the attributes of a measurement. prepareAttributes has made most
// of them, because making them takes longer than measuring.
func (i *instruments) attributesFor(name, key, value string) metric.MeasurementOption {
	if prepared, ok := i.preparedAttributes[label{key, value}]; ok {
		return prepared
	}
	var attributes []attribute.KeyValue
	if key != "" {
		attributes = append(attributes, attribute.String(key, value))
	}
	if i.names {
		attributes = append(attributes, attribute.String(nameKey, name))
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
