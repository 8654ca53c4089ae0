package swaplock

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/locktable/swap/stamped"
)

// mistakeVariable selects one of the mistakes for TestConformance.
const mistakeVariable = "PAWL_SWAPLOCK_MISTAKE"

// Each mistake runs in its own process, and mostly waits. So many may run in parallel.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "48"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tick := 100 * time.Millisecond
	wrong := mistakes[os.Getenv(mistakeVariable)]
	if wrong.store != nil {
		tick = wrong.tick
	}
	go Serve(l, tick, time.Hour) // an hour ahead, so that a store that uses its own clock fails
	addr := l.Addr().String()
	open := func(addr string) driver.Driver { return Open(addr, tick) }
	if wrong.store != nil {
		open = func(addr string) driver.Driver {
			return locktable.New(swap.New(wrong.store(newStore(addr, tick)), "", func(driver.Signal) {}), "")
		}
	}
	var patience time.Duration // the default of the suite, for the mistakes
	if wrong.store == nil {
		patience = 20 * time.Second // without a mistake no wait is in vain
	}
	drivertest.Run(t, drivertest.Harness{
		Patience: patience,
		Open:     func(testing.TB) driver.Driver { return open(addr) },
		OpenThrough: func(_ testing.TB, n *drivertest.Network) driver.Driver {
			return open(n.Addr(addr))
		},
		Uncertainty: 4 * tick,
	})
}

// mistakes are the mistakes in docs/internals/writing-a-store.md, each with the subtest
// that finds it.
var mistakes = map[string]struct {
	store func(s *store) swap.Store
	tick  time.Duration
	fails string
}{
	"ignored versions": {func(s *store) swap.Store { return ignoringVersions{s} }, 0, "Basics/OnlyOneOfManyConcurrentClaimsIsGranted"},
	"unstamped":        {func(s *store) swap.Store { return unstamped{s} }, 0, "End/ATryThatComesAfterItsEndChangesNothing"},
	"fixed window":     {func(s *store) swap.Store { return fixedWindow{s, &swap.Clock{}} }, 0, "End/ANetworkThatBecomesSlowerDelaysAndNoMore"},
	"fixed window with ticks": {
		func(s *store) swap.Store { return fixedWindow{s, &swap.Clock{Tick: s.clock.Tick}} },
		250 * time.Millisecond, "End/ANetworkThatBecomesSlowerDelaysAndNoMore",
	},
	"own clock": {func(s *store) swap.Store { return ownClock{s, &swap.Clock{}} }, 0, "Basics/AFreeNameIsGranted"},
	"repeating": {func(s *store) swap.Store { return repeating{s} }, 0, "Trouble/AReleaseWhoseAnswerIsLostIsNoLoss"},
	"no DelaysWrites": {
		func(s *store) swap.Store { return struct{ swap.Store }{s} },
		time.Second, "End/AClaimThatComesJustAfterItsLastReleaseIsNotGranted",
	},
	"cleaned names": {func(s *store) swap.Store { return cleaningNames{s} }, 0, "Basics/NamesAreComparedByteForByte"},
}

// ignoringVersions ignores the version of a swap.
type ignoringVersions struct{ *store }

// On bothLoaded two clients that have read the same value wait for each other, for a
// second at most. On a busy machine one may already have written when the other reads.
var bothLoaded = make(chan struct{})

func (b ignoringVersions) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	all, err := b.store.Load(ctx, names)
	select {
	case bothLoaded <- struct{}{}:
	case <-bothLoaded:
	case <-time.After(time.Second):
	}
	return all, err
}

// Swap swaps whatever the version is: if another client swapped meanwhile, it repeats.
func (b ignoringVersions) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	for {
		for i := range swaps {
			now, err := b.store.Load(ctx, []string{swaps[i].Name})
			if err != nil {
				return nil, err
			}
			swaps[i].Version = now[0].Version
		}
		all, err := b.store.Swap(ctx, swaps)
		if err != nil || !slices.ContainsFunc(all, func(s swap.Swapped) bool { return !s.Done && !s.OutsideWindow }) {
			return all, err
		}
	}
}

// unstamped treats every swap as one in time.
type unstamped struct{ *store }

func (u unstamped) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	answer, err := u.call(ctx, "Get", names[0])
	if err != nil || answer.Value.Version == 0 {
		return make([]swap.Stored, len(names)), err
	}
	e, err := stamped.Decode(answer.Value.Data)
	if err != nil {
		return nil, err
	}
	return []swap.Stored{{Value: e.Value, Version: answer.Value.Version}}, nil
}

// fixedWindow asks for the time when it has to, but its clock never learns of late swaps.
type fixedWindow struct {
	*store
	clock *swap.Clock
}

func (d fixedWindow) Time(ctx context.Context) (swap.Window, error) {
	return d.clock.Ask(ctx, func(ctx context.Context) error {
		sent := time.Now()
		answer, err := d.call(ctx, "Get", "")
		if err == nil {
			d.clock.Learn(locktable.At(answer.Now), sent, time.Now())
		}
		return err
	})
}

// repeating sends a failed request again, as many client libraries do.
type repeating struct{ *store }

func (a repeating) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	all, err := a.store.Swap(ctx, swaps)
	if errors.Is(err, driver.ErrUnavailable) {
		return a.store.Swap(ctx, swaps)
	}
	return all, err
}

// ownClock takes the client's clock for the server's.
type ownClock struct {
	*store
	clock *swap.Clock
}

func (o ownClock) Time(ctx context.Context) (swap.Window, error) {
	return o.clock.Ask(ctx, func(context.Context) error {
		now := time.Now()
		o.clock.Learn(locktable.At(now), now, now)
		return nil
	})
}

// cleaningNames puts names into a path unchanged, and the server cleans the path.
type cleaningNames struct{ *store }

func (p cleaningNames) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	names = slices.Clone(names)
	for i := range names {
		names[i] = path.Clean(names[i])
	}
	return p.store.Load(ctx, names)
}

func (p cleaningNames) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	for i := range swaps {
		swaps[i].Name = path.Clean(swaps[i].Name)
	}
	return p.store.Swap(ctx, swaps)
}

// Windows are two ticks wider with ticks, so leases may last two ticks longer.
func TestMaxOverrunCountsTheTicks(t *testing.T) {
	d := Open("127.0.0.1:1", time.Second)
	if got, want := d.Properties().MaxOverrun, 7*time.Second; got != want {
		t.Errorf("MaxOverrun is %v, want %v", got, want)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestTheSuiteNamesTheMistakesOfThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for drivers with mistakes")
	}
	page, err := os.ReadFile("../../docs/internals/writing-a-store.md")
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(string(page), "`"+m.fails+"`") {
				t.Errorf("the page does not name %s", m.fails)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestConformance$/"+m.fails+"$", "-test.count=1")
			cmd.Env = append(os.Environ(), mistakeVariable+"="+name)
			if output, _ := cmd.CombinedOutput(); !strings.Contains(string(output), "--- FAIL: TestConformance/"+m.fails+" (") {
				t.Errorf("%s did not fail:\n%s", m.fails, output)
			}
		})
	}
}
