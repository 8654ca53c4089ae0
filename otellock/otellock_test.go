package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/otellock"
)

// Functions that all tests share.
var noError, skipIfShort = basictest.NoError, basictest.SkipIfShort

func mustGet[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

// A fixture has a client whose observer reports to the SDK, and another client of the
// same memory.
type fixture struct {
	t             *testing.T
	reader        *sdkmetric.ManualReader
	spans         *tracetest.SpanRecorder
	meters        *sdkmetric.MeterProvider
	traces        *sdktrace.TracerProvider
	a, b          *pawl.Client
	initialCounts []string // the counts before any event
}

func newFixture(t *testing.T, names bool) *fixture {
	t.Helper()
	fx := &fixture{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	fx.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(fx.spans))
	fx.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(fx.reader))
	observer := mustGet(otellock.New(&otellock.Options{MeterProvider: fx.meters, TracerProvider: fx.traces, Names: names}))(t)
	memory := memlock.NewMemory(nil)
	fx.a = mustGet(pawl.New(memory.Driver(), &pawl.Options{Observer: observer, TTL: 9 * time.Second}))(t)
	fx.b = mustGet(pawl.New(memory.Driver(), nil))(t)
	t.Cleanup(func() { _ = errors.Join(fx.a.Close(), fx.b.Close()) })
	fx.initialCounts = fx.counts()
	return fx
}

// counts returns all data points, in a form that is easy to compare: "metric{attributes}
// n".
func (fx *fixture) counts() (all []string) {
	fx.t.Helper()
	var data metricdata.ResourceMetrics
	noError(fx.t, fx.reader.Collect(context.Background(), &data))
	line := func(m metricdata.Metrics, set attribute.Set, n any) {
		all = append(all, fmt.Sprintf("%s{%s} %v", m.Name, set.Encoded(attribute.DefaultEncoder()), n))
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					line(m, p.Attributes, fmt.Sprintf("%d times, %v s", p.Count, p.Sum))
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					line(m, p.Attributes, p.Value)
				}
			default:
				fx.t.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	slices.Sort(all)
	return all
}

// want checks that these counts, and only these, differ from the first ones.
func (fx *fixture) want(want ...string) {
	fx.t.Helper()
	got := slices.DeleteFunc(fx.counts(), func(line string) bool { return slices.Contains(fx.initialCounts, line) })
	if !slices.Equal(got, want) {
		fx.t.Errorf("counted:\n%q\nwant:\n%q", got, want)
	}
}

func TestEventsAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, false)
		ctx := t.Context()
		other := mustGet(fx.b.Mutex("x").Lock(ctx))(t)
		if _, err := fx.a.Mutex("x").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, err := fx.a.Mutex("x").Lock(short); err == nil {
			t.Fatal("Lock granted a held name")
		}
		got := make(chan *pawl.Lease)
		go func() {
			lease, err := fx.a.Mutex("x").Lock(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- lease
		}()
		synctest.Wait()
		fx.want(
			`pawl.wait.duration{pawl.outcome=gave_up} 1 times, 2 s`, `pawl.wait.duration{pawl.outcome=held} 1 times, 0 s`,
			`pawl.waiting{} 1`,
		)
		time.Sleep(3 * time.Second)
		noError(t, other.Release(ctx))
		lease := <-got
		time.Sleep(4 * time.Second)
		noError(t, lease.Release(ctx))
		lost := mustGet(fx.a.Mutex("x").Lock(ctx))(t)
		time.Sleep(time.Second)
		noError(t, fx.b.Break(ctx, "x", lost.Fence(), &pawl.BreakOptions{Delay: -1}))
		<-lost.Done()
		synctest.Wait()
		fx.want(
			`pawl.hold.duration{pawl.outcome=lost} 1 times, 1 s`, `pawl.hold.duration{pawl.outcome=released} 1 times, 4 s`,
			`pawl.lost{pawl.reason=broken} 1`,
			`pawl.wait.duration{pawl.outcome=acquired} 2 times, 3 s`,
			`pawl.wait.duration{pawl.outcome=gave_up} 1 times, 2 s`, `pawl.wait.duration{pawl.outcome=held} 1 times, 0 s`,
		)
		if ended := fx.spans.Ended(); len(ended) != 0 {
			t.Errorf("a caller without a trace has the spans %v", ended)
		}
	})
}

// An alert compares a counter with its earlier value. A counter that appears with the
// first lost lease has no earlier value.
func TestCountersBeginAtZero(t *testing.T) {
	fx := newFixture(t, false)
	fx.initialCounts = nil
	fx.want(
		`pawl.held{} 0`,
		`pawl.lost{pawl.reason=broken} 0`, `pawl.lost{pawl.reason=closed} 0`, `pawl.lost{pawl.reason=expired} 0`,
		`pawl.lost{pawl.reason=max_hold} 0`, `pawl.lost{pawl.reason=unhealthy} 0`, `pawl.lost{pawl.reason=unreachable} 0`,
		`pawl.request.failures{pawl.op=acquire} 0`, `pawl.request.failures{pawl.op=release} 0`, `pawl.request.failures{pawl.op=renew} 0`,
		`pawl.stale.writes{} 0`, `pawl.waiting{} 0`,
	)
}

func TestNamesAreExportedOnlyWithTheOption(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, true)
		noError(t, fx.a.Mutex("x").Do(t.Context(), func(context.Context) error { return nil }))
		fx.want(
			`pawl.held{pawl.name=x} 0`, `pawl.hold.duration{pawl.name=x,pawl.outcome=released} 1 times, 0 s`,
			`pawl.wait.duration{pawl.name=x,pawl.outcome=acquired} 1 times, 0 s`, `pawl.waiting{pawl.name=x} 0`,
		)
	})
}

func TestATracedCallerGetsSpansOfItsWaitAndItsHold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, false)
		ctx, caller := fx.traces.Tracer("test").Start(t.Context(), "caller")
		other := mustGet(fx.b.Mutex("x").Lock(ctx))(t)
		time.AfterFunc(3*time.Second, func() { _ = other.Release(ctx) })
		var fence uint64
		err := fx.a.Mutex("x").Do(ctx, func(ctx context.Context) error {
			fence, _ = pawl.FenceOf(ctx, "x")
			time.Sleep(2 * time.Second)
			return nil
		})
		noError(t, err)
		caller.End()
		ended := fx.spans.Ended()
		if len(ended) != 3 || ended[0].Name() != "pawl wait" || ended[1].Name() != "pawl hold" {
			t.Fatalf("spans: %v", ended)
		}
		wait, hold, parent := ended[0], ended[1], ended[2].SpanContext()
		if wait.Parent().SpanID() != parent.SpanID() || wait.EndTime().Sub(wait.StartTime()) != 3*time.Second {
			t.Errorf("the parent of the wait is %v, its duration %v", wait.Parent(), wait.EndTime().Sub(wait.StartTime()))
		}
		if hold.SpanContext().TraceID() == parent.TraceID() || len(hold.Links()) != 1 || hold.Links()[0].SpanContext.SpanID() != parent.SpanID() ||
			hold.EndTime().Sub(hold.StartTime()) != 2*time.Second || hold.Status().Code != codes.Unset {
			t.Errorf("the span of the hold is %+v, want a trace of its own, linked to the caller, and 2s", hold)
		}
		if !slices.Contains(hold.Attributes(), attribute.Int64("pawl.fence", int64(fence))) || !slices.Contains(hold.Attributes(), attribute.String("pawl.name", "x")) {
			t.Errorf("the hold has the attributes %v, want the fence %d and the name x", hold.Attributes(), fence)
		}
	})
}

func TestADetachedLeaseIsNotCountedAsHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, false)
		lease := mustGet(fx.a.Mutex("x").Lock(t.Context()))(t)
		mustGet(lease.Detach(t.Context()))(t)
		fx.want(`pawl.hold.duration{pawl.outcome=detached} 1 times, 0 s`, `pawl.wait.duration{pawl.outcome=acquired} 1 times, 0 s`)
	})
}

// The observer reports many measurements at a time. None is missing when the reader
// collects the metrics.
func TestReadingTheMetricsRecordsAllMeasurements(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, false)
		for cycles := 1; cycles <= 200; cycles++ {
			noError(t, fx.a.Mutex("x").Do(t.Context(), func(context.Context) error { return nil }))
			fx.want(fmt.Sprintf(`pawl.hold.duration{pawl.outcome=released} %d times, 0 s`, cycles), fmt.Sprintf(`pawl.wait.duration{pawl.outcome=acquired} %d times, 0 s`, cycles))
		}
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				for range 20 {
					_ = fx.a.Mutex(strconv.Itoa(n)).Do(t.Context(), func(context.Context) error { return nil })
				}
			})
		}
		all.Wait()
		fx.want(`pawl.hold.duration{pawl.outcome=released} 1200 times, 0 s`, `pawl.wait.duration{pawl.outcome=acquired} 1200 times, 0 s`)
	})
}

// Each client may have an observer of its own. The provider adds up their counts.
func TestTheCountsOfObserversOfOneProviderAddUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, false)
		another := mustGet(otellock.New(&otellock.Options{MeterProvider: fx.meters}))(t)
		c := mustGet(pawl.New(memlock.New(nil), &pawl.Options{Observer: another}))(t)
		defer c.Close()
		for _, c := range []*pawl.Client{fx.a, c} {
			mustGet(c.Mutex("x").Lock(t.Context()))(t)
		}
		fx.want(`pawl.held{} 2`, `pawl.wait.duration{pawl.outcome=acquired} 2 times, 0 s`)
	})
}

// If a client is gone, its counts stay, and the SDK does not call its observer again.
func TestAnObserverIsFreedWithItsClient(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	fx := &fixture{t: t, reader: reader, meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}
	func() {
		observer := mustGet(otellock.New(&otellock.Options{MeterProvider: fx.meters}))(t)
		c := mustGet(pawl.New(memlock.New(nil), &pawl.Options{Observer: observer}))(t)
		noError(t, c.Mutex("x").Do(t.Context(), func(context.Context) error { return nil }))
		noError(t, c.Close())
	}()
	for {
		runtime.GC()
		counts := fx.counts()
		if !slices.Contains(counts, "pawl.held{} 0") {
			if !slices.ContainsFunc(counts, func(line string) bool {
				return strings.HasPrefix(line, "pawl.hold.duration{pawl.outcome=released} 1 times")
			}) {
				t.Errorf("the counts of the client that is gone are missing in %q", counts)
			}
			return
		}
		time.Sleep(time.Millisecond) // only the time limit of the test ends this loop
	}
}

// A service may lock one name for each order. The observer keeps a thousand of the names
// that are not held.
func TestNamesThatAreNotHeldAreForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fx := newFixture(t, true)
		held := mustGet(fx.a.Mutex("held").Lock(t.Context()))(t)
		for n := range 1200 {
			noError(t, fx.a.Mutex(strconv.Itoa(n)).Do(t.Context(), func(context.Context) error { return nil }))
		}
		gauges := 0
		for _, line := range fx.counts() {
			if strings.HasPrefix(line, "pawl.held{") {
				gauges++
			}
		}
		if gauges > 1001 || !slices.Contains(fx.counts(), "pawl.held{pawl.name=held} 1") {
			t.Errorf("%d names are counted", gauges)
		}
		noError(t, held.Release(t.Context()))
	})
}
