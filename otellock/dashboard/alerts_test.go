package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/otellock"
)

// alerts returns the shipped rules by their names, as Prometheus reads them.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../alerts.yaml", false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	noError(t, errors.Join(errs...))
	found := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			found[r.Alert] = r
		}
	}
	return found
}

// fires reports whether an alert fired between begin and end, because its expression
// returned the same series for as long as the rule demands.
func (i *instance) fires(rule rulefmt.Rule, begin, end time.Time) bool {
	i.t.Helper()
	step := 15 * time.Second
	if end.Sub(begin) > 12*time.Hour {
		step = 5 * time.Minute
	}
	for _, s := range i.queryRange(rule.Expr, begin, end, step) {
		row := 0
		for n := range s.Floats {
			if n == 0 || s.Floats[n].T-s.Floats[n-1].T > step.Milliseconds() {
				row = 0
			}
			if time.Duration(row)*step >= time.Duration(rule.For) {
				return true
			}
			row++
		}
	}
	return false
}

// wantFired checks that these alerts fired, and no others.
func (i *instance) wantFired(t *testing.T, begin, end time.Time, want ...string) {
	t.Helper()
	for name, rule := range alerts(t) {
		if got := i.fires(rule, begin, end); got != slices.Contains(want, name) {
			t.Errorf("%s fires: %t; its rule is %s", name, got, rule.Expr)
		}
	}
}

// scrapeFor scrapes for the time d.
func (i *instance) scrapeFor(d time.Duration) {
	i.t.Helper()
	for range d / (15 * time.Second) {
		time.Sleep(15 * time.Second)
		i.scrape()
	}
}

func TestAlertsIfEverythingFails(t *testing.T) {
	i, begin, end := run(t, false, func(ctx context.Context, i *instance) {
		i.scrape()
		for range 60 {
			i.causeEvents(ctx)
		}
	})
	i.wantFired(t, begin, end, "PawlLeaseLost", "PawlBackendDown", "PawlRequestsFail", "PawlStaleWrite")
	for _, rule := range alerts(t) {
		i.checkNames(rule.Expr, false)
	}
}

// One event of each kind occurs before the first scrape of the process: all counters
// begin with 1.
func TestAlertsOfTheFirstEventOfAProcess(t *testing.T) {
	for _, names := range []bool{false, true} {
		i, begin, end := run(t, names, func(ctx context.Context, i *instance) {
			lost := must(i.locks.Mutex("y").Lock(ctx))
			i.want(i.other.Break(ctx, "y", lost.Fence(), &pawl.BreakOptions{Delay: -1}), nil)
			<-lost.Done()
			i.want(otellock.Stale(lost.Context(), pawl.ErrStale, i.o), pawl.ErrStale)
			i.flaky.fails = true
			_, err := i.locks.Mutex("x").TryLock(ctx)
			i.want(err, pawl.ErrUnavailable)
			i.scrapeFor(20 * time.Minute)
		})
		i.wantFired(t, begin, end, "PawlLeaseLost", "PawlBackendDown", "PawlStaleWrite")
		i.wantFired(t, end.Add(-5*time.Minute), end)
	}
}

// The other locks of a busy process do not hide the one that is stuck.
func TestAlertsIfOneLockIsStuck(t *testing.T) {
	i, begin, end := run(t, true, func(ctx context.Context, i *instance) {
		held := must(i.other.Mutex("x").Lock(ctx))
		released := make(chan error)
		go func() { released <- must(i.locks.Mutex("x").Lock(ctx)).Release(ctx) }()
		for range 40 {
			i.want(must(i.locks.Mutex("busy").Lock(ctx)).Release(ctx), nil)
			i.scrapeFor(30 * time.Second)
		}
		i.want(held.Release(ctx), nil)
		i.want(<-released, nil)
	})
	i.wantFired(t, begin, begin.Add(14*time.Minute))
	i.wantFired(t, begin, end, "PawlStuck")
}

func TestAlertsIfClaimsWaitForLong(t *testing.T) {
	i, begin, end := run(t, false, func(ctx context.Context, i *instance) {
		for range 40 {
			held := must(i.other.Mutex("x").Lock(ctx))
			time.AfterFunc(88*time.Second, func() { _ = held.Release(ctx) })
			go func() { i.scrapeFor(75 * time.Second) }()
			i.want(must(i.locks.Mutex("x").Lock(ctx)).Release(ctx), nil)
			time.Sleep(2 * time.Second)
			i.scrape()
		}
	})
	i.wantFired(t, begin, end, "PawlWaitsLong")
}

// Another process has won the election. So none of these processes leads.
func TestAlertsIfNoProcessLeads(t *testing.T) {
	i, begin, end := run(t, true, func(ctx context.Context, i *instance) {
		held := must(i.other.Mutex("leader-mail").Lock(ctx))
		released := make(chan error)
		go func() { released <- must(i.locks.Mutex("leader-mail").Lock(ctx)).Release(ctx) }()
		i.scrapeFor(5 * time.Minute)
		i.want(held.Release(ctx), nil)
		i.want(<-released, nil)
	})
	i.wantFired(t, begin, end, "PawlNoLeader")
}

// Processes wait for locks, hold them and release them. Standbys of an election wait for
// hours, and one of them takes over.
func TestNoAlertWithoutFailures(t *testing.T) {
	i, begin, end := run(t, true, func(ctx context.Context, i *instance) {
		leader := must(i.locks.Mutex("leader-mail").Lock(ctx))
		leads := make(chan *pawl.Lease)
		for range 2 {
			go func() { leads <- must(i.locks.Mutex("leader-mail").Lock(ctx)) }()
		}
		for n := range 720 {
			held := must(i.other.Mutex("x").Lock(ctx))
			time.AfterFunc(5*time.Second, func() { _ = held.Release(ctx) })
			lease := must(i.locks.Mutex("x").Lock(ctx))
			time.Sleep(10 * time.Second)
			i.scrape()
			i.want(lease.Release(ctx), nil)
			if n == 300 || n == 500 {
				i.want(leader.Release(ctx), nil)
				leader = <-leads
			}
		}
		i.want(leader.Release(ctx), nil)
	})
	i.wantFired(t, begin, end)
}

// A job runs once a day, every second day in a new process. Then it stops running.
func TestAlertsOfADailyJob(t *testing.T) {
	const interval = 4 * time.Minute // between scrapes; Prometheus ignores samples older than 5 min
	var lastRun time.Time
	i, begin, end := run(t, true, func(ctx context.Context, i *instance) {
		for day := range 5 {
			if day%2 == 0 {
				i.restart()
			}
			if day < 4 {
				lastRun = time.Now()
				i.want(must(i.locks.Mutex("daily-report").Lock(ctx)).Release(ctx), nil)
			}
			for range 24 * time.Hour / interval {
				time.Sleep(interval)
				i.scrape()
			}
		}
	})
	i.wantFired(t, begin, lastRun.Add(25*time.Hour))
	i.wantFired(t, begin, end, "PawlDailyMissed")
}
