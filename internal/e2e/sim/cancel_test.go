package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A scene is a small plan around one call, the first of process 1. The test cancels that
// call at every moment at which an event happens during the call: a message leaves or
// arrives, a node answers, a name is passed on, a timer fires.
type scene struct {
	name  string
	steps [][]step // sessions of process 1
	other []step   // the steps of process 2
}

func locks(verb string, after, hold time.Duration) step {
	return step{
		verb: verb, name: "job", sort: "mutex", weight: driver.Exclusive, limit: driver.Unlimited, ttl: 3 * time.Second,
		after: after, hold: hold, timeout: never, cancel: never,
	}
}

func (s step) as(sort string, weight, limit int) step {
	s.sort, s.weight, s.limit = sort, weight, limit
	return s
}

func (s step) through(do bool) step {
	s.do = do
	return s
}

// Process 2 comes first, and locks the name once more at the end, to find leftovers.
var last = locks("lock", 0, time.Millisecond)

var scenes = func() []scene {
	const late = 10 * time.Millisecond
	holds := []step{locks("lock", 0, 50*time.Millisecond), last}
	reads := []step{locks("lock", 0, 50*time.Millisecond).as("reader", 1, driver.Unlimited), last}
	some := []step{locks("lock", 0, 50*time.Millisecond).as("permits", 2, 3), last}
	all := []scene{
		{"Lock of a free name", [][]step{{locks("lock", late, 5*time.Millisecond)}}, []step{last}},
		{"Lock of a held name", [][]step{{locks("lock", late, 5*time.Millisecond)}}, holds},
		{"Lock behind another of its process", [][]step{{locks("lock", late+1, 5*time.Millisecond)}, {locks("lock", late, 5*time.Millisecond)}}, holds},
		{"Lock that is passed on in its process", [][]step{{locks("lock", late, 2*time.Millisecond)}, {locks("lock", 0, 15*time.Millisecond)}}, []step{last}},
		{"Lock for writing behind a reader", [][]step{{locks("lock", late, 5*time.Millisecond)}}, reads},
		{"RLock behind a writer", [][]step{{locks("lock", late, 5*time.Millisecond).as("reader", 1, driver.Unlimited)}}, holds},
		{"Acquire of permits that are taken", [][]step{{locks("lock", late, 5*time.Millisecond).as("permits", 2, 3)}}, some},
		{"TryLock", [][]step{{locks("try", late, 5*time.Millisecond)}}, []step{last}},
		{"TryAcquire beside others", [][]step{{locks("try", late, 5*time.Millisecond).as("permits", 1, 3)}}, some},
		{"Do", [][]step{{locks("lock", late, 5*time.Millisecond).through(true)}}, holds},
		{"ForceLock", [][]step{{locks("force", late, 5*time.Millisecond)}}, holds},
		{"Break", [][]step{{locks("break", late, 0)}}, holds},
		{"Close with a holder and a waiter", [][]step{{locks("close", late, 0)}, {locks("lock", 0, time.Second)}, {locks("lock", 5*time.Millisecond, 0)}}, []step{last}},
	}
	return all
}()

func (s scene) plan(backend string) *plan {
	p := &plan{
		backend: backend, unit: 3 * time.Second, fates: 1, span: 0,
		weather: weather{low: 500 * time.Microsecond, high: 2 * time.Millisecond},
		names:   []namePlan{{name: "job"}}, nodes: make([]nodePlan, 1),
		processes: []processPlan{{sessions: s.steps}, {sessions: [][]step{s.other}}},
	}
	if backend == "quorum" {
		p.nodes = make([]nodePlan, 3)
	}
	return p
}

// cancelled returns the plan in which the first call of process 1 is cancelled at that
// time.
func (s scene) cancelled(backend string, at time.Duration) *plan {
	steps := slices.Clone(s.steps)
	steps[0] = slices.Clone(steps[0])
	steps[0][0].cancel = at
	return scene{s.name, steps, s.other}.plan(backend)
}

func TestEveryOperationIsCancelledAtEveryMoment(t *testing.T) {
	backends := []string{"memory", "quorum"}
	if testing.Short() {
		backends = backends[:1]
	}
	for _, backend := range backends {
		for _, s := range scenes {
			t.Run(fmt.Sprintf("%s over %s", s.name, backend), func(t *testing.T) {
				h := simulate(t, s.plan(backend), planted{})
				if len(h.found) > 0 {
					report(t, h, "not cancelled", "the test")
					return
				}
				moments := s.moments(h)
				for _, at := range moments {
					if h := simulate(t, s.cancelled(backend, at), planted{}); len(h.found) > 0 {
						report(t, h, fmt.Sprintf("cancelled after %v", at), "the test")
						return
					}
				}
				t.Logf("cancelled at %d moments", len(moments))
			})
		}
	}
}

// moments returns the times of the events during the call, counted from its beginning,
// the instants after them, and the middle of each two.
func (s scene) moments(h *history) []time.Duration {
	var c *call
	for _, x := range h.calls {
		if first := s.steps[0][0]; c == nil && x.process.number == 1 && x.verb == first.verb && x.after == first.after && x.hold == first.hold {
			c = x
		}
	}
	end := max(c.answered, c.ended)
	all := []time.Duration{0, 1}
	before := c.began
	for _, m := range h.w.moves {
		if m < c.began || m > end {
			continue
		}
		all = append(all, (before+m)/2-c.began, m-c.began, m-c.began+1)
		before = m
	}
	slices.Sort(all)
	return slices.Compact(all)
}
