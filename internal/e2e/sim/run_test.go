package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// planOver returns the plan of a seed, over one kind of backend if it is named.
func planOver(backend string, seed uint64) *plan { return planOf(diceOf(seed), backend) }

// planOf draws a plan over the named backend, or over any if the name is empty. Most
// plans have one node, because that is quick.
func planOf(d *dice, backend string) *plan {
	roll := d.below(100)
	if backend == "" {
		backend = "memory"
		switch {
		case roll < 10:
			backend = "quorum"
		case roll < 12:
			backend = "redis"
		case roll < 32:
			backend = "store"
		}
	}
	if backend != "quorum" {
		return drawPlan(d, backend, 1)
	}
	return drawPlan(d, backend, 3+2*(roll%3/2))
}

// report prints the first violation, and the events of its name.
func report(t *testing.T, h *history, schedule, repeat string) {
	t.Helper()
	v := h.violations[0]
	t.Errorf("VIOLATION: %s: %q: %s\nTo repeat it: %s\nOver %s, in %v:\n%s", schedule, v.name, v.text, repeat, h.w.plan.backend, h.w.plan.weather, h.eventsOf(v))
}

// TestSchedules runs as many schedules as fit a test run; make sim runs any number:
//
//	PAWL_SIM_SEEDS    how many
//	PAWL_SIM_SEED     the first, or the only one
//	PAWL_SIM_STEP     the distance of two seeds, if several processes share the work
//	PAWL_SIM_BACKEND  the only backend: memory, store, quorum or redis
//	PAWL_SIM_TRACE    logs a hash of the events of each schedule
func TestSchedules(t *testing.T) {
	count, first, step := uint64(1500), envNumber(t, "PAWL_SIM_SEED", 1), envNumber(t, "PAWL_SIM_STEP", 1)
	if testing.Short() {
		count = 300
	}
	if os.Getenv("PAWL_SIM_SEED") != "" {
		count = 1
	}
	count = envNumber(t, "PAWL_SIM_SEEDS", count)
	backend := os.Getenv("PAWL_SIM_BACKEND")
	const maxFailures = 5
	began, run, failed := time.Now(), map[string]int{}, 0
	for seed := first; seed < first+count*step && failed < maxFailures; seed += step {
		h := simulate(t, planOver(backend, seed), planted{})
		run[h.w.plan.backend]++
		if os.Getenv("PAWL_SIM_TRACE") != "" || count == 1 {
			t.Logf("seed %d over %s: trace %s", seed, h.w.plan.backend, h.trace())
		}
		if len(h.violations) > 0 {
			failed++
			only := ""
			if backend != "" {
				only = " BACKEND=" + backend
			}
			report(t, h, fmt.Sprintf("seed %d", seed), fmt.Sprintf("make sim SEED=%d%s", seed, only))
		}
	}
	t.Logf("from %d on, each %d: schedules over %v in %v", first, step, run, time.Since(began).Round(time.Millisecond))
}

func envNumber(t *testing.T, variable string, fallback uint64) uint64 {
	s := os.Getenv(variable)
	if s == "" {
		return fallback
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// The fuzzer chooses the bytes from which a plan is drawn, and the fate of each message
// follows from them. The plans have one node, because that is quick.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a schedule in which two processes take names from each other by force while the node hangs"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := simulate(t, planOf(diceFrom(b), "memory"), planted{}); len(h.violations) > 0 {
			report(t, h, fmt.Sprintf("bytes %q", b), "go test -run FuzzSchedule/NAME ./internal/e2e/sim")
		}
	})
}
