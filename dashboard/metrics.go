package dashboard

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// Metrics counts the events of clients, for /metrics. The zero value is ready. Set its
// Observer in the Options of the clients to count. Package otellock reports the same
// events to OpenTelemetry, with more detail.
type Metrics struct {
	mu       sync.Mutex // protects all below
	counters map[string]uint64
	held     int64
	waits    histogram
	holds    histogram
}

// A histogram counts durations in the buckets that bucketBounds separates.
type histogram struct {
	counts [len(bucketBounds) + 1]uint64
	sum    time.Duration
}

// bucketBounds are the bounds of the buckets, in seconds.
var bucketBounds = [...]float64{.001, .005, .025, .1, .5, 1, 5, 30, 60, 300, 1800, 3600, 86400}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearch(bucketBounds[:], d.Seconds())
	h.counts[i]++
	h.sum += d
}

// Observer returns an observer that counts.
func (m *Metrics) Observer() *pawl.Observer {
	return &pawl.Observer{
		Acquired: func(e pawl.AcquiredEvent) {
			m.withLock(func() { m.held++; m.waits.add(e.Waited); m.countLocked("acquired", "") })
		},
		NotAcquired: func(pawl.NotAcquiredEvent) { m.withLock(func() { m.countLocked("refused", "") }) },
		Released: func(e pawl.ReleasedEvent) {
			m.withLock(func() { m.held--; m.holds.add(e.Held); m.countLocked("released", "") })
		},
		Lost: func(e pawl.LostEvent) {
			m.withLock(func() { m.held--; m.holds.add(e.Held); m.countLocked("lost", e.Err.Reason.String()) })
		},
		Failed: func(e pawl.FailedEvent) { m.withLock(func() { m.countLocked("request_failures", string(e.Op)) }) },
	}
}

func (m *Metrics) withLock(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *Metrics) countLocked(what, which string) {
	if m.counters == nil {
		m.counters = map[string]uint64{}
	}
	m.counters[what+" "+which]++
}

// failures returns the number of requests that have failed.
func (m *Metrics) failures(op pawl.Op) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counters["request_failures "+string(op)]
}

// An exposition is text in the format of Prometheus.
type exposition struct{ bytes.Buffer }

func (x *exposition) writeHead(name, kind, help string) {
	fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (x *exposition) gauge(name, help string, value float64) {
	x.writeHead(name, "gauge", help)
	fmt.Fprintf(x, "%s %s\n", name, formatNumber(value))
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// serveMetrics answers Prometheus. The answer has no names, owners or labels, so its size
// does not grow with the number of locks.
func (h *Handler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	m := h.latestView(r)
	c := m.view.Counts()
	var longest time.Duration
	for _, row := range m.view.Rows {
		longest = max(longest, m.view.Waits(row, m.now))
	}
	var x exposition
	up := 0.0
	if m.view.Err == nil && !m.view.ScannedAt.IsZero() {
		up = 1
	}
	x.gauge("pawl_backend_up", "Whether the backend answered the last scan.", up)
	x.gauge("pawl_look_duration_seconds", "How long the last scan of all names took.", m.view.ScanTime.Seconds())
	x.gauge("pawl_names", "Names that are held, waited for or closed.", float64(c.Names))
	x.gauge("pawl_leases", "Leases that are held, by any client.", float64(c.Held))
	x.gauge("pawl_waiters", "Claims that wait in the backend.", float64(c.Waiters))
	x.gauge("pawl_overdue_names", "Names with a lease that was not renewed in time.", float64(c.Overdue))
	x.gauge("pawl_closed_names", "Names that grant nothing for a while.", float64(c.Closed))
	x.gauge("pawl_damaged_names", "Names that cannot be read.", float64(len(m.view.Damaged)))
	x.gauge("pawl_deadlocks", "Circles of processes that wait for each other.", float64(len(m.view.Blocks().Deadlocks)))
	x.gauge("pawl_longest_wait_seconds", "The longest time that a waiter has been waiting.", longest.Seconds())
	x.gauge("pawl_dashboard_viewers", "Pages that are kept up to date.", float64(h.overview.Viewers()))
	if h.options.Metrics != nil {
		h.options.Metrics.write(&x)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(x.Bytes())
}

// write writes the counters of the clients. It also writes counters that are 0, so that
// an alert sees the first event.
func (m *Metrics) write(x *exposition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counter := func(what, help, label string, values ...string) {
		name := "pawl_client_" + what + "_total"
		x.writeHead(name, "counter", help)
		for _, v := range values {
			labels := ""
			if label != "" {
				labels = fmt.Sprintf("{%s=%q}", label, strings.ReplaceAll(v, " ", "_"))
			}
			fmt.Fprintf(x, "%s%s %d\n", name, labels, m.counters[what+" "+v])
		}
	}
	x.gauge("pawl_client_held", "Leases that clients of this process hold.", float64(m.held))
	counter("acquired", "Leases that were granted to clients of this process.", "", "")
	counter("refused", "Claims of clients of this process that ended without a lease.", "", "")
	counter("released", "Leases that clients of this process released.", "", "")
	counter("lost", "Leases that clients of this process lost.", "reason", reasons()...)
	counter("request_failures", "Requests of clients of this process that failed.", "op", "acquire", "renew", "release")
	x.histogram("pawl_client_wait_seconds", "How long clients of this process waited for their leases.", &m.waits)
	x.histogram("pawl_client_hold_seconds", "How long clients of this process held their leases.", &m.holds)
}

func reasons() (all []string) {
	for r := pawl.ReasonExpired; r <= pawl.ReasonUnhealthy; r++ {
		all = append(all, r.String())
	}
	return all
}

func (x *exposition) histogram(name, help string, h *histogram) {
	x.writeHead(name, "histogram", help)
	total := uint64(0)
	for i, bound := range bucketBounds {
		total += h.counts[i]
		fmt.Fprintf(x, "%s_bucket{le=%q} %d\n", name, formatNumber(bound), total)
	}
	total += h.counts[len(bucketBounds)]
	fmt.Fprintf(x, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %s\n%s_count %d\n", name, total, name, formatNumber(h.sum.Seconds()), name, total)
}
