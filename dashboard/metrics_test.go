package dashboard_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/dashboard"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

func TestMetricsAreInTheFormatOfPrometheus(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var metrics dashboard.Metrics
		memory := memlock.NewMemory(nil)
		s := newSiteOnDriver(t, memory.Driver(), memory, &dashboard.Options{Metrics: &metrics})
		app, err := pawl.New(memory.Driver(), &pawl.Options{Observer: metrics.Observer()})
		noError(t, err)
		defer app.Close()
		s.take(t, claim("job", 1))
		s.queue(t, claim("job", 2))
		if _, err := app.Mutex("job").TryLock(t.Context()); err == nil {
			t.Fatal("it is held twice")
		}
		lease, err := app.Mutex("mine").Lock(t.Context())
		noError(t, err)
		time.Sleep(2 * time.Second)
		wantTexts(t, s.get(t, "metrics"), "pawl_client_held 1\n")
		noError(t, lease.Release(t.Context()))
		time.Sleep(4 * time.Second)
		text := s.get(t, "metrics")
		wantTexts(t, text, "pawl_backend_up 1\n", "pawl_names 1\n", "pawl_leases 1\n", "pawl_waiters 1\n", "pawl_longest_wait_seconds 6\n",
			"pawl_client_acquired_total 1\n", "pawl_client_refused_total 1\n", "pawl_client_held 0\n", `pawl_client_lost_total{reason="broken"} 0`,
			`pawl_client_hold_seconds_bucket{le="1"} 0`, `pawl_client_hold_seconds_bucket{le="5"} 1`, `pawl_client_hold_seconds_bucket{le="+Inf"} 1`,
			"pawl_client_hold_seconds_sum 2\n", `pawl_client_request_failures_total{op="renew"} 0`)
		line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]+"\})? [0-9.e+-]+)$`)
		for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if !line.MatchString(l) {
				t.Errorf("Prometheus cannot read %q", l)
			}
		}
		wantNoTexts(t, text, "job", "host")
	})
}
