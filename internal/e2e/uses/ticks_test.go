package uses_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// ticksVariable names the environment variable with the number of ticks: `make ticks`
// sets it to a thousand.
const ticksVariable = "PAWL_TICKS"

// Instances run the ticks of a schedule, ten of them, or twenty in `make ticks`. Their
// clocks are up to 2 s ahead or behind. During some ticks the test kills the instance
// that runs the tick. In the mode at most once, each tick runs once. In the mode at least
// once, each tick is done; if the first instance was killed, by another one.
//
// A machine that is too slow may lose an answer or a lease. Then it is unknown whether
// that tick has run, and Do returns an error that says so to one instance. Without such
// an error no tick is missing, and none is done twice.
func TestEachTickIsDoneOnce(t *testing.T) {
	nightly(t, "it waits for real time")
	instances, ticks, all := 10, 60, false
	if given := os.Getenv(ticksVariable); given != "" {
		n, err := strconv.Atoi(given)
		noError(t, err)
		instances, ticks, all = 20, n, true
	}
	on(t, backends, func(t *testing.T, b *backend) {
		for _, mode := range []struct {
			name        string
			atLeastOnce bool
		}{{"AtMostOnce", false}, {"AtLeastOnce", true}} {
			t.Run(mode.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				d := newDrill(t, b, instances, ticks, mode.atLeastOnce)
				d.run()
				d.judge(all)
				t.Logf("%v", time.Since(began))
			})
		}
	})
}

// judge fails the test for each tick that ran too often, or did not run. With strict, an
// error that the result is unknown excuses no tick.
func (d *drill) judge(strict bool) {
	var began, done, killed, told int
	for n, k := range d.ticks {
		began, done, told = began+k.began, done+k.done, told+len(k.told)
		if d.deaths[n] != none {
			killed++
		}
		excused := len(k.told) > 0 && !strict
		switch {
		case d.atLeastOnce && k.done == 0, !d.atLeastOnce && k.began == 0 && !excused:
			d.t.Errorf("tick %d has not run; told: %v", n, k.told)
		case !d.atLeastOnce && k.began > 1:
			d.t.Errorf("tick %d ran %d times", n, k.began)
		case d.atLeastOnce && k.done > 1 && d.deaths[n] != afterWork && !excused:
			d.t.Errorf("tick %d was done %d times", n, k.done)
		}
	}
	d.t.Logf("%d ticks of %d instances, %d of which were killed at work: %d runs began, %d ended, %d errors were told",
		len(d.ticks), d.instances, killed, began, done, told)
}
