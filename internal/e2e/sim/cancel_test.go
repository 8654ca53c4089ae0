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

func lockStep(verb string, after, hold time.Duration) step {
	return step{
		verb: verb, name: "job", kind: "mutex", weight: driver.Exclusive, limit: driver.Unlimited, ttl: 3 * time.Second,
		after: after, hold: hold, timeout: never, cancel: never,
	}
}

func (s step) as(kind string, weight, limit int) step {
	s.kind, s.weight, s.limit = kind, weight, limit
	return s
}

func (s step) withDo() step {
	s.usesDo = true
	return s
}

// lastLock is the last step of process 2. It finds leftovers.
var lastLock = lockStep("lock", 0, time.Millisecond)

var scenes = func() []scene {
	const late = 10 * time.Millisecond
	holds := []step{lockStep("lock", 0, 50*time.Millisecond), lastLock}
	reads := []step{lockStep("lock", 0, 50*time.Millisecond).as("reader", 1, driver.Unlimited), lastLock}
	takesPermits := []step{lockStep("lock", 0, 50*time.Millisecond).as("permits", 2, 3), lastLock}
	all := []scene{
		{"Lock of a free name", [][]step{{lockStep("lock", late, 5*time.Millisecond)}}, []step{lastLock}},
		{"Lock of a held name", [][]step{{lockStep("lock", late, 5*time.Millisecond)}}, holds},
		{"Lock behind another of its process", [][]step{{lockStep("lock", late+1, 5*time.Millisecond)}, {lockStep("lock", late, 5*time.Millisecond)}}, holds},
		{"Lock that is passed on in its process", [][]step{{lockStep("lock", late, 2*time.Millisecond)}, {lockStep("lock", 0, 15*time.Millisecond)}}, []step{lastLock}},
		{"Lock for writing behind a reader", [][]step{{lockStep("lock", late, 5*time.Millisecond)}}, reads},
		{"RLock behind a writer", [][]step{{lockStep("lock", late, 5*time.Millisecond).as("reader", 1, driver.Unlimited)}}, holds},
		{"Acquire of permits that are taken", [][]step{{lockStep("lock", late, 5*time.Millisecond).as("permits", 2, 3)}}, takesPermits},
		{"TryLock", [][]step{{lockStep("try", late, 5*time.Millisecond)}}, []step{lastLock}},
		{"TryAcquire beside others", [][]step{{lockStep("try", late, 5*time.Millisecond).as("permits", 1, 3)}}, takesPermits},
		{"Do", [][]step{{lockStep("lock", late, 5*time.Millisecond).withDo()}}, holds},
		{"ForceLock", [][]step{{lockStep("force", late, 5*time.Millisecond)}}, holds},
		{"Break", [][]step{{lockStep("break", late, 0)}}, holds},
		{"Close with a holder and a waiter", [][]step{{lockStep("close", late, 0)}, {lockStep("lock", 0, time.Second)}, {lockStep("lock", 5*time.Millisecond, 0)}}, []step{lastLock}},
	}
	return all
}()

func (s scene) plan(backend string) *plan {
	p := &plan{
		backend: backend, baseTTL: 3 * time.Second, fateSeed: 1, span: 0,
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
				if len(h.violations) > 0 {
					report(t, h, "not cancelled", "the test")
					return
				}
				moments := s.moments(h)
				for _, at := range moments {
					if h := simulate(t, s.cancelled(backend, at), planted{}); len(h.violations) > 0 {
						report(t, h, fmt.Sprintf("cancelled after %v", at), "the test")
						return
					}
				}
				t.Logf("cancelled at %d moments", len(moments))
			})
		}
	}
}

// moments returns the times of the events during the call, counted from its beginning, an
// instant after each event, and the middle between each two events.
func (s scene) moments(h *history) []time.Duration {
	var c *call
	for _, x := range h.calls {
		if first := s.steps[0][0]; c == nil && x.process.number == 1 && x.verb == first.verb && x.after == first.after && x.hold == first.hold {
			c = x
		}
	}
	end := max(c.answered, c.releaseReturned)
	all := []time.Duration{0, 1}
	before := c.began
	for _, m := range h.w.eventTimes {
		if m < c.began || m > end {
			continue
		}
		all = append(all, (before+m)/2-c.began, m-c.began, m-c.began+1)
		before = m
	}
	slices.Sort(all)
	return slices.Compact(all)
}
