package dashboard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// A scraper acts as Prometheus for one instance: it reads the exported metrics, adds the
// labels job and instance, and keeps all samples.
type scraper struct {
	t       *testing.T
	exports http.Handler
	series  map[string]*promql.Series // by their labels
}

func (s *scraper) scrape() {
	s.t.Helper()
	answer := httptest.NewRecorder()
	s.exports.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		s.t.Fatalf("scraping: %s", answer.Body)
	}
	p, err := textparse.New(answer.Body.Bytes(), answer.Header().Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{})
	noError(s.t, err)
	for {
		switch entry, err := p.Next(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			s.t.Fatal(err)
		case entry == textparse.EntrySeries:
			var l labels.Labels
			_, _, value := p.Series()
			p.Labels(&l)
			s.addSample(labels.NewBuilder(l).Set("job", "app").Set("instance", "10.0.0.7:9090").Labels(), value)
		}
	}
}

func (s *scraper) addSample(l labels.Labels, value float64) {
	series := s.series[l.String()]
	if series == nil {
		series = &promql.Series{Metric: l}
		s.series[l.String()] = series
	}
	series.Floats = append(series.Floats, promql.FPoint{T: time.Now().UnixMilli(), F: value})
}

// query evaluates a query for every 15 s of the last five minutes before now.
func (s *scraper) query(query string, now time.Time) promql.Matrix {
	s.t.Helper()
	return s.queryRange(query, now.Add(-5*time.Minute), now, 15*time.Second)
}

// queryRange evaluates a query for each step from begin to end.
func (s *scraper) queryRange(query string, begin, end time.Time, step time.Duration) promql.Matrix {
	s.t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute, Parser: promQL})
	defer engine.Close()
	q, err := engine.NewRangeQuery(context.Background(), s, nil, query, begin, end, step)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	result := q.Exec(context.Background())
	if result.Err != nil || len(result.Warnings) > 0 {
		s.t.Fatalf("%s: %v, %v", query, result.Err, result.Warnings)
	}
	matrix, err := result.Matrix()
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	for i := range matrix { // the engine reuses them
		matrix[i].Floats = slices.Clone(matrix[i].Floats)
	}
	return matrix
}

var promQL = parser.NewParser(parser.Options{})

// Querier lets the query engine read the scraper.
func (s *scraper) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: s.selectSeries}, nil
}

func (s *scraper) selectSeries(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, series := range s.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) }) {
			set.series = append(set.series, *series)
		}
	}
	slices.SortFunc(set.series, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	return set
}

// A seriesSet yields its series one after the other.
type seriesSet struct {
	series []promql.Series
	next   int
}

func (s *seriesSet) Next() bool {
	s.next++
	return s.next <= len(s.series)
}
func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(s.series[s.next-1]) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
