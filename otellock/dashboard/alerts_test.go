package dashboard

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// alerts are the rules that the documents give, by their names.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations-alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`- alert: (\w+)\n +expr: (.*)\n`).FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	if len(found) < 5 {
		t.Fatalf("only %q were found: is the pattern right?", found)
	}
	return found
}

// goesOff reports whether an alarm went off in the last five minutes: whether its rule
// has an answer.
func (i *instance) goesOff(rule string, end time.Time) bool {
	return slices.ContainsFunc(i.ask(rule, end), func(s promql.Series) bool { return len(s.Floats) > 0 })
}

// Each alarm goes off on one of two bad days: where all fails that can, and where one
// holds the lock for longer than anybody should.
func TestEachAlertGoesOff(t *testing.T) {
	var failing, stuck *instance
	var failed, waiting, granted time.Time
	synctest.Test(t, func(t *testing.T) {
		failing = start(t, false)
		failing.scrape()
		for range 40 {
			failing.live(t.Context())
		}
		failed = time.Now()
	})
	synctest.Test(t, func(t *testing.T) {
		stuck = start(t, false)
		stuck.want(must(stuck.locks.Mutex("y").Lock(t.Context())).Release(t.Context()), nil)
		stuck.scrape()
		held := must(stuck.other.Mutex("x").Lock(t.Context()))
		waits := make(chan error)
		go func() { waits <- must(stuck.locks.Mutex("x").Lock(t.Context())).Release(t.Context()) }()
		for range 20 * 4 {
			time.Sleep(15 * time.Second)
			stuck.scrape()
		}
		waiting = time.Now()
		stuck.want(held.Release(t.Context()), nil)
		stuck.want(<-waits, nil)
		for range 4 {
			time.Sleep(15 * time.Second)
			stuck.scrape()
		}
		granted = time.Now()
	})
	failing.t, stuck.t = t, t
	for name, rule := range alerts(t) {
		failing.checkNames(rule, false)
		if !failing.goesOff(rule, failed) && !stuck.goesOff(rule, waiting) && !stuck.goesOff(rule, granted) {
			t.Errorf("%s never goes off: %s", name, rule)
		}
	}
	if rule := alerts(t)["PawlStuck"]; !stuck.goesOff(rule, waiting) || failing.goesOff(rule, failed) {
		t.Errorf("PawlStuck does not tell a lock that is stuck from one that is not")
	}
}

// Where locks are waited for, held and released, no alarm goes off.
func TestNoAlertGoesOffWhereAllIsWell(t *testing.T) {
	var i *instance
	var end time.Time
	synctest.Test(t, func(t *testing.T) {
		i = start(t, false)
		i.scrape()
		for range 80 {
			held := must(i.other.Mutex("x").Lock(t.Context()))
			time.AfterFunc(5*time.Second, func() { _ = held.Release(t.Context()) })
			lease := must(i.locks.Mutex("x").Lock(t.Context()))
			time.Sleep(10 * time.Second)
			i.scrape()
			i.want(lease.Release(t.Context()), nil)
		}
		end = time.Now()
	})
	i.t = t
	for name, rule := range alerts(t) {
		if i.goesOff(rule, end) {
			t.Errorf("%s goes off: %s", name, rule)
		}
	}
}
