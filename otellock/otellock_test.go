package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/otellock"
)

// A lab has a client whose observer tells the SDK, and another client of the same memory.
type lab struct {
	t      *testing.T
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	traces *sdktrace.TracerProvider
	a, b   *pawl.Client
}

func newLab(t *testing.T, names bool) *lab {
	t.Helper()
	l := &lab{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	l.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(l.spans))
	observer, err := otellock.New(&otellock.Options{
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(l.reader)), Traces: l.traces, Names: names,
	})
	if err != nil {
		t.Fatal(err)
	}
	memory := memlock.NewMemory(nil)
	for i, o := range []*pawl.Options{{Observer: observer, TTL: 9 * time.Second}, nil} {
		c, err := pawl.New(memory.Driver(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		*[]**pawl.Client{&l.a, &l.b}[i] = c
	}
	return l
}

// counts are all data points, in a form that is easy to compare: "metric{attributes} n".
func (l *lab) counts() (all []string) {
	l.t.Helper()
	var data metricdata.ResourceMetrics
	if err := l.reader.Collect(context.Background(), &data); err != nil {
		l.t.Fatal(err)
	}
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
			}
		}
	}
	slices.Sort(all)
	return all
}

func (l *lab) want(want ...string) {
	l.t.Helper()
	if got := l.counts(); !slices.Equal(got, want) {
		l.t.Errorf("counted:\n%q\nwant:\n%q", got, want)
	}
}

func TestWhatHappensIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, false)
		ctx := t.Context()
		other, err := l.b.Mutex("x").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.a.Mutex("x").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, err := l.a.Mutex("x").Lock(short); err == nil {
			t.Fatal("granted")
		}
		got := make(chan *pawl.Lease)
		go func() {
			lease, err := l.a.Mutex("x").Lock(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- lease
		}()
		synctest.Wait()
		l.want(
			`pawl.wait.duration{outcome=gave_up} 1 times, 2 s`, `pawl.wait.duration{outcome=held} 1 times, 0 s`,
			`pawl.waiting{} 1`,
		)
		time.Sleep(3 * time.Second)
		if err := other.Release(ctx); err != nil {
			t.Fatal(err)
		}
		lease := <-got
		time.Sleep(4 * time.Second)
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}
		lost, err := l.a.Mutex("x").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := l.b.Break(ctx, "x", lost.Fence(), 0); err != nil {
			t.Fatal(err)
		}
		<-lost.Done()
		synctest.Wait()
		l.want(
			`pawl.held{} 0`,
			`pawl.hold.duration{outcome=lost} 1 times, 1 s`, `pawl.hold.duration{outcome=released} 1 times, 4 s`,
			`pawl.lost{reason=broken} 1`,
			`pawl.wait.duration{outcome=acquired} 2 times, 3 s`,
			`pawl.wait.duration{outcome=gave_up} 1 times, 2 s`, `pawl.wait.duration{outcome=held} 1 times, 0 s`,
			`pawl.waiting{} 0`,
		)
	})
}

func TestNamesAreAttributesOnlyIfAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, true)
		if err := l.a.Mutex("x").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		l.want(
			`pawl.held{pawl.name=x} 0`, `pawl.hold.duration{outcome=released,pawl.name=x} 1 times, 0 s`,
			`pawl.wait.duration{outcome=acquired,pawl.name=x} 1 times, 0 s`,
		)
	})
}

func TestSpansOfWaitAndHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, false)
		ctx, caller := l.traces.Tracer("test").Start(t.Context(), "caller")
		other, err := l.b.Mutex("x").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, func() { _ = other.Release(ctx) })
		var fence uint64
		err = l.a.Mutex("x").Do(ctx, func(ctx context.Context) error {
			fence, _ = pawl.FenceFromContext(ctx)
			time.Sleep(2 * time.Second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		caller.End()
		ended := l.spans.Ended()
		if len(ended) != 3 || ended[0].Name() != "pawl wait" || ended[1].Name() != "pawl hold" {
			t.Fatalf("spans: %v", ended)
		}
		wait, hold, parent := ended[0], ended[1], ended[2].SpanContext()
		if wait.Parent().SpanID() != parent.SpanID() || wait.EndTime().Sub(wait.StartTime()) != 3*time.Second {
			t.Errorf("the wait is of %v, %v long", wait.Parent(), wait.EndTime().Sub(wait.StartTime()))
		}
		if hold.SpanContext().TraceID() == parent.TraceID() || len(hold.Links()) != 1 || hold.Links()[0].SpanContext.SpanID() != parent.SpanID() ||
			hold.EndTime().Sub(hold.StartTime()) != 2*time.Second || hold.Status().Code != codes.Unset {
			t.Errorf("the hold: %+v", hold)
		}
		if !slices.Contains(hold.Attributes(), attribute.Int64("pawl.fence", int64(fence))) || !slices.Contains(hold.Attributes(), attribute.String("pawl.name", "x")) {
			t.Errorf("attributes: %v", hold.Attributes())
		}
	})
}

func TestADetachedLeaseIsHeldNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, false)
		lease, err := l.a.Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.want(`pawl.held{} 0`, `pawl.hold.duration{outcome=detached} 1 times, 0 s`, `pawl.wait.duration{outcome=acquired} 1 times, 0 s`)
	})
}

func TestAnotherObserverIsToldToo(t *testing.T) {
	told := 0
	o, err := otellock.New(&otellock.Options{Next: &pawl.Observer{Acquired: func(pawl.AcquiredEvent) { told++ }}})
	if err != nil {
		t.Fatal(err)
	}
	locks, err := pawl.New(memlock.New(nil), &pawl.Options{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	if err := locks.Mutex("x").Do(t.Context(), func(context.Context) error { return nil }); err != nil || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
}
