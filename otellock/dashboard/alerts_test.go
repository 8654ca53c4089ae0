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

// firedBetween reports whether an alert fired between begin and end, because its
// expression returned the same series for as long as the rule demands.
func (i *instance) firedBetween(rule rulefmt.Rule, begin, end time.Time) bool {
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
		if got := i.firedBetween(rule, begin, end); got != slices.Contains(want, name) {
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

func TestAlertsFireIfEverythingFails(t *testing.T) {
	i, begin, end := runScenario(t, false, func(ctx context.Context, i *instance) {
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
func TestAlertsFireForTheFirstEventOfAProcess(t *testing.T) {
	for _, names := range []bool{false, true} {
		i, begin, end := runScenario(t, names, func(ctx context.Context, i *instance) {
			lost := mustLock(i.locks.Mutex("y").Lock(ctx))
			i.wantErr(i.other.Break(ctx, "y", lost.Fence(), &pawl.BreakOptions{Delay: -1}), nil)
			<-lost.Done()
			i.wantErr(otellock.Stale(lost.Context(), pawl.ErrStale, i.options), pawl.ErrStale)
			i.flaky.fails = true
			_, err := i.locks.Mutex("x").TryLock(ctx)
			i.wantErr(err, pawl.ErrUnavailable)
			i.scrapeFor(20 * time.Minute)
		})
		i.wantFired(t, begin, end, "PawlLeaseLost", "PawlBackendDown", "PawlStaleWrite")
		i.wantFired(t, end.Add(-5*time.Minute), end)
	}
}

// The other locks of a busy process do not hide the one that is stuck.
func TestAnAlertFiresIfOneLockIsStuck(t *testing.T) {
	i, begin, end := runScenario(t, true, func(ctx context.Context, i *instance) {
		held := mustLock(i.other.Mutex("x").Lock(ctx))
		released := make(chan error)
		go func() { released <- mustLock(i.locks.Mutex("x").Lock(ctx)).Release(ctx) }()
		for range 40 {
			i.wantErr(mustLock(i.locks.Mutex("busy").Lock(ctx)).Release(ctx), nil)
			i.scrapeFor(30 * time.Second)
		}
		i.wantErr(held.Release(ctx), nil)
		i.wantErr(<-released, nil)
	})
	i.wantFired(t, begin, begin.Add(14*time.Minute))
	i.wantFired(t, begin, end, "PawlStuck")
}

func TestAnAlertFiresIfClaimsWaitForLong(t *testing.T) {
	i, begin, end := runScenario(t, false, func(ctx context.Context, i *instance) {
		for range 40 {
			held := mustLock(i.other.Mutex("x").Lock(ctx))
			time.AfterFunc(88*time.Second, func() { _ = held.Release(ctx) })
			go func() { i.scrapeFor(75 * time.Second) }()
			i.wantErr(mustLock(i.locks.Mutex("x").Lock(ctx)).Release(ctx), nil)
			time.Sleep(2 * time.Second)
			i.scrape()
		}
	})
	i.wantFired(t, begin, end, "PawlWaitsLong")
}

// Another process has won the election. So none of these processes leads.
func TestAnAlertFiresIfNoProcessLeads(t *testing.T) {
	i, begin, end := runScenario(t, true, func(ctx context.Context, i *instance) {
		held := mustLock(i.other.Mutex("leader-mail").Lock(ctx))
		released := make(chan error)
		go func() { released <- mustLock(i.locks.Mutex("leader-mail").Lock(ctx)).Release(ctx) }()
		i.scrapeFor(5 * time.Minute)
		i.wantErr(held.Release(ctx), nil)
		i.wantErr(<-released, nil)
	})
	i.wantFired(t, begin, end, "PawlNoLeader")
}

// Processes wait for locks, hold them and release them. Standbys of an election wait for
// hours, and one of them takes over.
func TestNoAlertFiresWithoutFailures(t *testing.T) {
	i, begin, end := runScenario(t, true, func(ctx context.Context, i *instance) {
		leader := mustLock(i.locks.Mutex("leader-mail").Lock(ctx))
		leads := make(chan *pawl.Lease)
		for range 2 {
			go func() { leads <- mustLock(i.locks.Mutex("leader-mail").Lock(ctx)) }()
		}
		for n := range 720 {
			held := mustLock(i.other.Mutex("x").Lock(ctx))
			time.AfterFunc(5*time.Second, func() { _ = held.Release(ctx) })
			lease := mustLock(i.locks.Mutex("x").Lock(ctx))
			time.Sleep(10 * time.Second)
			i.scrape()
			i.wantErr(lease.Release(ctx), nil)
			if n == 300 || n == 500 {
				i.wantErr(leader.Release(ctx), nil)
				leader = <-leads
			}
		}
		i.wantErr(leader.Release(ctx), nil)
	})
	i.wantFired(t, begin, end)
}

// A job runs once a day, every second day in a new process. Then it stops running.
func TestAnAlertFiresIfADailyJobStopsRunning(t *testing.T) {
	const interval = 4 * time.Minute // between scrapes; Prometheus ignores samples older than 5 min
	var lastRun time.Time
	i, begin, end := runScenario(t, true, func(ctx context.Context, i *instance) {
		for day := range 5 {
			if day%2 == 0 {
				i.restart()
			}
			if day < 4 {
				lastRun = time.Now()
				i.wantErr(mustLock(i.locks.Mutex("daily-report").Lock(ctx)).Release(ctx), nil)
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
