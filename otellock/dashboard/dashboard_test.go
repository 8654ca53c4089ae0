package dashboard

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
	"github.com/pawl-go/pawl/otellock"
)

var noError = basictest.NoError

// flakyDriver is a backend that fails while fails is true.
type flakyDriver struct {
	driver.Driver

	fails bool
}

func (f *flakyDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if f.fails {
		return driver.Grant{}, errors.New("network down")
	}
	return f.Driver.Acquire(ctx, c)
}

// An instance has a client with an observer. The scraper scrapes it every 15 s.
type instance struct {
	*scraper

	options *otellock.Options
	flaky   *flakyDriver
	locks   *pawl.Client // observed
	other   *pawl.Client // of another process
	lead    *pawl.Lease  // of an election; nil in every second 15 s
}

func newInstance(t *testing.T, names bool) *instance {
	t.Helper()
	memory := memlock.NewMemory(nil)
	i := &instance{scraper: &scraper{t: t, series: map[string]*promql.Series{}}, flaky: &flakyDriver{Driver: engine.Full(memory.Driver())}}
	i.options = &otellock.Options{Names: names}
	i.restart()
	i.other = client(t, memory.Driver(), nil)
	return i
}

// runScenario runs a scenario in virtual time, and returns the instance with its samples.
func runScenario(t *testing.T, names bool, f func(ctx context.Context, i *instance)) (i *instance, begin, end time.Time) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		i, begin = newInstance(t, names), time.Now()
		f(t.Context(), i)
		end = time.Now()
	})
	i.t = t // the t of the bubble has ended
	return i, begin, end
}

// restart replaces the observed process with a new one at the same address.
func (i *instance) restart() {
	i.t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	noError(i.t, err)
	i.scraper.exports = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	i.options.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	observer, err := otellock.New(i.options)
	noError(i.t, err)
	i.locks = client(i.t, i.flaky, &pawl.Options{Observer: observer})
}

func client(t *testing.T, d driver.Driver, o *pawl.Options) *pawl.Client {
	t.Helper()
	c, err := pawl.New(d, o)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// causeEvents takes 15 s, in which each event occurs that the dashboard shows.
func (i *instance) causeEvents(ctx context.Context) {
	held := mustLock(i.other.Mutex("x").Lock(ctx))
	_, err := i.locks.Mutex("x").TryLock(ctx)
	i.wantErr(err, pawl.ErrHeld)
	time.AfterFunc(2*time.Second, func() { _ = held.Release(ctx) })
	lease := mustLock(i.locks.Mutex("x").Lock(ctx)) // after 2 s
	time.Sleep(time.Second)
	i.wantErr(lease.Release(ctx), nil)

	for _, name := range []string{"y", "daily-report"} {
		lost := mustLock(i.locks.Mutex(name).Lock(ctx))
		i.wantErr(i.other.Break(ctx, name, lost.Fence(), &pawl.BreakOptions{Delay: -1}), nil)
		<-lost.Done()
		i.wantErr(otellock.Stale(lost.Context(), pawl.ErrStale, i.options), pawl.ErrStale)
	}
	if i.lead == nil {
		i.lead = mustLock(i.locks.Mutex("leader-mail").Lock(ctx))
	} else {
		i.wantErr(i.lead.Release(ctx), nil)
		i.lead = nil
	}

	i.flaky.fails = true
	_, err = i.locks.Mutex("x").TryLock(ctx)
	i.wantErr(err, pawl.ErrUnavailable)
	i.flaky.fails = false

	// At the scrape, one lock is held, one job runs, and one claim waits.
	held = mustLock(i.other.Mutex("y").Lock(ctx))
	lease = mustLock(i.locks.Mutex("x").Lock(ctx))
	job := mustLock(i.locks.Mutex("daily-report").Lock(ctx))
	waits := make(chan *pawl.Lease)
	go func() { waits <- mustLock(i.locks.Mutex("y").Lock(ctx)) }()
	time.Sleep(10 * time.Second)
	i.scrape()
	time.Sleep(2 * time.Second)
	i.wantErr(held.Release(ctx), nil)
	i.wantErr((<-waits).Release(ctx), nil)
	i.wantErr(lease.Release(ctx), nil)
	i.wantErr(job.Release(ctx), nil)
}

func mustLock(l *pawl.Lease, err error) *pawl.Lease {
	if err != nil {
		panic(err)
	}
	return l
}

func (i *instance) wantErr(got, want error) {
	i.t.Helper()
	if !errors.Is(got, want) {
		i.t.Errorf("%v, want %v", got, want)
	}
}

// If every event occurs, each panel has a line above 0, with and without names; panels
// that select names need them.
func TestEachPanelShowsItsEvents(t *testing.T) {
	for name, names := range map[string]bool{"WithNames": true, "Without": false} {
		t.Run(name, func(t *testing.T) {
			i, _, end := runScenario(t, names, func(ctx context.Context, i *instance) {
				i.scrape()
				for range 40 {
					i.causeEvents(ctx)
				}
			})
			b := readBoard(t)
			for title, queries := range b.queries() {
				for _, query := range queries {
					if needsNames(query) && !names {
						continue
					}
					i.checkNames(query, names)
					if !slices.ContainsFunc(i.query(query, end), isAboveZero) {
						t.Errorf("%s shows nothing: %s", title, query)
					}
				}
			}
		})
	}
}

// isAboveZero reports whether a line is above 0 at some time.
func isAboveZero(s promql.Series) bool {
	return slices.ContainsFunc(s.Floats, func(p promql.FPoint) bool { return p.F > 0 && !math.IsInf(p.F, 0) })
}

// checkNames checks that the instance exports the metrics and labels of a query. It
// exports the labels of names only with names.
func (i *instance) checkNames(query string, names bool) {
	i.t.Helper()
	expr, err := promQL.ParseExpr(query)
	if err != nil {
		i.t.Fatalf("%s: %v", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, within []parser.Node) error {
		n, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		var wanted []string // labels of this metric
		for _, outer := range within {
			if a, ok := outer.(*parser.AggregateExpr); ok {
				wanted = append(wanted, a.Grouping...)
			}
		}
		for _, m := range n.LabelMatchers {
			wanted = append(wanted, m.Name)
		}
		for _, label := range wanted {
			if (names || label != "pawl_name") && !i.exports(n.Name, label) {
				i.t.Errorf("%s{%s} is not exported, but %s needs it", n.Name, label, query)
			}
		}
		return nil
	})
}

func (i *instance) exports(metric, label string) bool {
	for _, s := range i.series {
		if s.Metric.Get(labels.MetricName) == metric && s.Metric.Has(label) {
			return true
		}
	}
	return false
}

// An instance has locked once, and had no other event. Its panels show lines at 0, not
// "No data".
func TestNoPanelIsEmptyWithoutEvents(t *testing.T) {
	i, _, end := runScenario(t, false, func(ctx context.Context, i *instance) {
		i.scrape()
		i.wantErr(mustLock(i.locks.Mutex("x").Lock(ctx)).Release(ctx), nil)
		i.scrapeFor(5 * time.Minute)
	})
	b := readBoard(t)
	for title, queries := range b.queries() {
		for _, query := range queries {
			if !needsNames(query) && len(i.query(query, end)) == 0 {
				t.Errorf("%s is empty: %s", title, query)
			}
		}
	}
	for _, v := range b.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(b.fillVariables(v.Definition))
		if m == nil {
			t.Errorf("the variable %s is no label_values query: %s", v.Name, v.Definition)
		} else if found := i.query(m[1], end); len(found) == 0 || !found[0].Metric.Has(m[2]) {
			t.Errorf("the variable %s has no values: %s", v.Name, v.Definition)
		}
	}
}

// The dashboard shows the first lost lease, because the counter was at 0 before.
func TestTheDashboardShowsTheFirstLoss(t *testing.T) {
	i, _, end := runScenario(t, false, func(ctx context.Context, i *instance) {
		i.scrape()
		lost := mustLock(i.locks.Mutex("y").Lock(ctx))
		i.wantErr(i.other.Break(ctx, "y", lost.Fence(), &pawl.BreakOptions{Delay: -1}), nil)
		<-lost.Done()
		synctest.Wait()
		i.scrapeFor(time.Minute)
	})
	if found := i.query(`sum(increase(pawl_lost_total[2m]))`, end); !slices.ContainsFunc(found, isAboveZero) {
		t.Errorf("nothing was lost: %v", found)
	}
}

// A panel shows each exported metric.
func TestEachMetricHasAPanel(t *testing.T) {
	i, _, _ := runScenario(t, false, func(ctx context.Context, i *instance) { i.causeEvents(ctx) })
	b := readBoard(t)
	all := strings.Join(slices.Concat(slices.Collect(maps.Values(b.queries()))...), "\n")
	for _, s := range i.series {
		name := s.Metric.Get(labels.MetricName)
		if !strings.HasPrefix(name, "pawl_") {
			continue // of the exporter
		}
		of := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !strings.Contains(all, of) {
			t.Errorf("no panel shows %s", of)
		}
	}
	ids := map[int]string{}
	for _, p := range b.Panels {
		if before, twice := ids[p.ID]; twice {
			t.Errorf("the panels %q and %q have the same id", before, p.Title)
		}
		ids[p.ID] = p.Title
	}
}

// Two processes take turns to lead. The dashboard counts each new leader once, and shows
// who leads.
func TestTheDashboardCountsNewLeaders(t *testing.T) {
	i, _, end := runScenario(t, true, func(ctx context.Context, i *instance) {
		elected := func(c *pawl.Client, d time.Duration) {
			lease := mustLock(c.Mutex("leader-mail").Lock(ctx))
			i.scrapeFor(d)
			i.wantErr(lease.Release(ctx), nil)
		}
		elected(i.locks, 2*time.Minute)
		elected(i.other, time.Minute) // the other process exports nothing
		elected(i.locks, time.Minute)
	})
	b := readBoard(t)
	queries := b.queries()
	begun := strings.ReplaceAll(queries["Changes of the leader"][0], "[1m]", "[5m]")
	if got := lastValue(i.query(begun, end)); got != 1 { // the first began before the first scrape
		t.Errorf("%v leaders; want 1", got)
	}
	for _, title := range []string{"Is there a leader", "Who leads, and since when"} {
		query := queries[title][0]
		for at, want := range map[time.Duration]float64{time.Second: 1, 90 * time.Second: 0, 150 * time.Second: 1} {
			if got := lastValue(i.query(query, end.Add(-at))); got != want {
				t.Errorf("%v before the end, %s is %v; want %v", at, title, got, want)
			}
		}
	}
}

// lastValue returns the last value of the only line.
func lastValue(m promql.Matrix) float64 {
	if len(m) != 1 || len(m[0].Floats) == 0 {
		return math.NaN()
	}
	return m[0].Floats[len(m[0].Floats)-1].F
}
