package observed

import (
	"context"
	"slices"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/otellock"
	_ "github.com/pawl-go/pawl/redislock"
)

// discard is an exporter that drops all spans.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// A kind is one way in which applications observe a client with OpenTelemetry's SDK.
type kind struct {
	name     string
	observer *pawl.Observer  // nil for no observer
	ctx      context.Context // of the caller
}

// kinds returns all kinds. The first has no observer.
func kinds(b *testing.B) []kind {
	b.Helper()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	all := []kind{{"None", nil, context.Background()}}
	add := func(name string, ctx context.Context, o *otellock.Options) {
		o.MeterProvider = meters
		observer, err := otellock.New(o)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, kind{name, observer, ctx})
	}
	add("Metrics", context.Background(), &otellock.Options{})
	add("Names", context.Background(), &otellock.Options{Names: true})
	for name, sampler := range map[string]sdktrace.Sampler{"Unsampled": sdktrace.NeverSample(), "Sampled": sdktrace.AlwaysSample()} {
		traces := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(discard{}))
		ctx, span := traces.Tracer("benchmark").Start(context.Background(), "caller")
		b.Cleanup(func() {
			span.End()
			_ = traces.Shutdown(context.Background())
		})
		add(name, ctx, &otellock.Options{TracerProvider: traces})
	}
	return all
}

func mutex(b *testing.B, d driver.Driver, o *pawl.Observer) *pawl.Mutex {
	b.Helper()
	c, err := pawl.New(d, &pawl.Options{Observer: o})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c.Mutex("cycle")
}

func cycle(ctx context.Context, b *testing.B, m *pawl.Mutex) {
	lease, err := m.Lock(ctx)
	if err == nil {
		err = lease.Release(ctx)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCycleObservedMemory measures a cycle in memory with each kind. The difference
// from the kind None is the cost of the observer.
func BenchmarkCycleObservedMemory(b *testing.B) {
	for _, k := range kinds(b) {
		b.Run(k.name, func(b *testing.B) {
			m := mutex(b, memlock.New(nil), k.observer)
			b.ReportAllocs()
			for b.Loop() {
				cycle(k.ctx, b, m)
			}
		})
	}
}

// BenchmarkCycleObservedRedis measures cycles on a real Redis with and without an
// observer, in turns, so that other load affects both alike. Clients differ by a few
// percent by chance. So there are several of each, and the benchmark compares the sums of
// their medians. The result of the kind None is chance alone.
func BenchmarkCycleObservedRedis(b *testing.B) {
	server := redistest.Start(b)
	for _, k := range kinds(b) {
		b.Run(k.name, func(b *testing.B) {
			const pairs, batch = 8, 25
			var clients [2 * pairs]*pawl.Mutex // without and with an observer, in turns
			var took [2 * pairs][]time.Duration
			for i := range clients {
				d, err := driver.Open(context.Background(), "redis://"+server.Addr)
				if err != nil {
					b.Fatal(err)
				}
				clients[i] = mutex(b, d, []*pawl.Observer{nil, k.observer}[i%2])
				cycle(k.ctx, b, clients[i]) // the first cycle makes connections, and loads scripts
			}
			for b.Loop() {
				for i, m := range clients {
					began := time.Now()
					for range batch {
						cycle(k.ctx, b, m)
					}
					took[i] = append(took[i], time.Since(began)/batch)
				}
			}
			var sum [2]float64
			for i := range took {
				slices.Sort(took[i])
				sum[i%2] += float64(took[i][len(took[i])/2].Nanoseconds())
			}
			b.ReportMetric(sum[0]/pairs/1000, "µs/cycle")
			b.ReportMetric(sum[1]/pairs/1000, "µs/observed")
			b.ReportMetric(100*(sum[1]/sum[0]-1), "%more")
		})
	}
}
