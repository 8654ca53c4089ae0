package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/bubble"
)

// TestMain makes schedules as repeatable as it can: goroutines take turns on one
// processor, and no garbage collection interrupts them. It cannot control the random
// choices of the Go runtime: see runtimedice.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30)
	os.Exit(m.Run())
}

// worlds counts the worlds that have run, for the garbage collections between them.
var worlds int

// seedRandom makes the product's random pauses and tokens depend on the seed.
func (w *world) seedRandom(t *testing.T) {
	t.Helper()
	t.Cleanup(backoff.Seed(w.plan.fateSeed))
	cryptotest.SetGlobalRandom(t, w.plan.fateSeed)
}

// collectGarbage frees the memory of earlier worlds. go-redis keeps timers in a
// sync.Pool, and must not use a timer of another bubble. Two collections empty the pool.
func (w *world) collectGarbage() {
	if worlds++; w.plan.backend == "redis" {
		runtime.GC()
		runtime.GC()
	} else if worlds%16 == 0 {
		runtime.GC()
	}
}

// trace returns a hash of all events, with their times and in their order.
func (h *history) trace() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := fnv.New64a()
	host, _ := os.Hostname()
	here := strings.NewReplacer(fmt.Sprintf("%s:%d", host, os.Getpid()), "here") // the holder in errors
	for _, e := range h.events {
		_, _ = here.WriteString(sum, fmt.Sprintln(int64(e.at), e.name, e.who, e.what, e.more))
	}
	_, _ = fmt.Fprintln(sum, h.w.eventTimes)
	return fmt.Sprintf("%016x", sum.Sum64())
}

// repeatsRandomNumbers reports whether the runtime's random numbers begin again in each
// bubble.
func repeatsRandomNumbers(t *testing.T) bool {
	t.Helper()
	var drawn [2]uint64
	for i := range drawn {
		bubble.Test(t, func(*testing.T) { drawn[i] = rand.Uint64() })
	}
	return drawn[0] == drawn[1]
}

// A seed is the same schedule each time: after other seeds, and in another process.
// Schedules over Redis differ, because miniredis and go-redis have goroutines and pauses
// of their own.
func TestASeedIsTheSameEachTime(t *testing.T) {
	if !repeatsRandomNumbers(t) {
		t.Skip("this runtime has other random numbers in each run: make sim builds one that repeats them, and runs this test")
	}
	backend, count := os.Getenv("PAWL_SIM_BACKEND"), envNumber(t, "PAWL_SIM_REPEATED", 60)
	run := func(seed uint64) string {
		h := simulate(t, planOver(backend, seed), planted{})
		return fmt.Sprintf("seed %d over %s: trace %s", seed, h.w.plan.backend, h.trace())
	}
	var seeds []uint64
	first := map[uint64]string{}
	for seed := uint64(1); seed <= count; seed++ {
		if planOver(backend, seed).backend != "redis" {
			seeds = append(seeds, seed)
			first[seed] = run(seed)
		}
	}
	differ := 0
	for _, seed := range slices.Backward(seeds) {
		if again := run(seed); again != first[seed] {
			differ++
			t.Logf("%s, and then %s", first[seed], again)
		}
	}
	other := exec.Command(os.Args[0], "-test.run", "^TestSchedules$", "-test.v", "-test.timeout", "0")
	other.Env = append(os.Environ(), "PAWL_SIM_TRACE=1", "PAWL_SIM_SEED=1", fmt.Sprint("PAWL_SIM_SEEDS=", count), "PAWL_SIM_STEP=")
	out, err := other.Output()
	if err != nil {
		t.Fatalf("another process: %v\n%s", err, out)
	}
	for _, seed := range seeds {
		if !bytes.Contains(out, []byte(first[seed]+"\n")) {
			differ++
			t.Logf("%s, but not in another process", first[seed])
		}
	}
	// Two of a thousand differ, seed 3 over quorum among them. The cause is not known.
	if t.Logf("%d seeds, three times each: %d differ", len(seeds), differ); differ > 1+len(seeds)/100 {
		t.Error("a schedule depends on more than its seed")
	}
}
