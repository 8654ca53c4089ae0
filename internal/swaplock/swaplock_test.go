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

// mistakeVariable has TestConformance run on a store with one of the mistakes.
const mistakeVariable = "PAWL_SWAPLOCK_MISTAKE"

// The mistakes wait, each in a process of its own.
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
	go Serve(l, tick, time.Hour) // or a store that takes its own clock for the server's would pass
	addr := l.Addr().String()
	open := func(addr string) driver.Driver { return Open(addr, tick) }
	if wrong.store != nil {
		open = func(addr string) driver.Driver {
			return locktable.New(swap.New(wrong.store(newStore(addr, tick)), "", func(driver.Signal) {}), "")
		}
	}
	var patience time.Duration // the suite's own, for the mistakes
	if wrong.store == nil {
		patience = 20 * time.Second // this store makes no mistake, so no wait is in vain
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
	"blind":     {func(s *store) swap.Store { return blind{s} }, 0, "Basics/OfManyAtOnceOneIsGranted"},
	"unstamped": {func(s *store) swap.Store { return unstamped{s} }, 0, "End/ATryThatComesAfterItsEndChangesNothing"},
	"deaf":      {func(s *store) swap.Store { return deaf{s, &swap.Clock{}} }, 0, "End/ANetworkThatBecomesSlowerDelaysAndNoMore"},
	"deaf to ticks": {
		func(s *store) swap.Store { return deaf{s, &swap.Clock{Tick: s.clock.Tick}} },
		250 * time.Millisecond, "End/ANetworkThatBecomesSlowerDelaysAndNoMore",
	},
	"own clock": {func(s *store) swap.Store { return own{s, &swap.Clock{}} }, 0, "Basics/AFreeNameIsGranted"},
	"again":     {func(s *store) swap.Store { return again{s} }, 0, "Trouble/AReleaseWhoseAnswerIsLostIsNoLoss"},
	"brief": {
		func(s *store) swap.Store { return struct{ swap.Store }{s} },
		time.Second, "End/AClaimThatComesJustAfterItsLastReleaseIsNotGranted",
	},
	"paths": {func(s *store) swap.Store { return paths{s} }, 0, "Basics/NamesAreComparedByteForByte"},
}

// blind ignores the version.
type blind struct{ *store }

// meet is the channel on which two clients that have read the same value wait for each
// other, for a second at most: on a busy machine one may have written before the other
// reads.
var meet = make(chan struct{})

func (b blind) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	all, err := b.store.Load(ctx, names)
	select {
	case meet <- struct{}{}:
	case <-meet:
	case <-time.After(time.Second):
	}
	return all, err
}

// Swap swaps in any case: if another client was in between, once more.
func (b blind) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
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

// unstamped takes every swap for one in time.
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

// deaf asks for the time when it has to, and does not tell that clock what it sees.
type deaf struct {
	*store
	clock *swap.Clock
}

func (d deaf) Time(ctx context.Context) (swap.Window, error) {
	return d.clock.Ask(ctx, func(ctx context.Context) error {
		sent := time.Now()
		answer, err := d.call(ctx, "Get", "")
		if err == nil {
			d.clock.Learn(locktable.At(answer.Now), sent, time.Now())
		}
		return err
	})
}

// again sends a request that failed once more, as many client libraries do.
type again struct{ *store }

func (a again) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	all, err := a.store.Swap(ctx, swaps)
	if errors.Is(err, driver.ErrUnavailable) {
		return a.store.Swap(ctx, swaps)
	}
	return all, err
}

// own takes the client's clock for the server's.
type own struct {
	*store
	clock *swap.Clock
}

func (o own) Time(ctx context.Context) (swap.Window, error) {
	return o.clock.Ask(ctx, func(context.Context) error {
		now := time.Now()
		o.clock.Learn(locktable.At(now), now, now)
		return nil
	})
}

// paths puts names into a path as they are, which the server cleans.
type paths struct{ *store }

func (p paths) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	names = slices.Clone(names)
	for i := range names {
		names[i] = path.Clean(names[i])
	}
	return p.store.Load(ctx, names)
}

func (p paths) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	for i := range swaps {
		swaps[i].Name = path.Clean(swaps[i].Name)
	}
	return p.store.Swap(ctx, swaps)
}

// Its windows are two ticks wider than those of a clock without ticks, so its leases may
// last as much longer.
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
		t.Skip("make test-all runs this: it waits for drivers that are wrong")
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
				t.Errorf("the page does not have %s", m.fails)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe, "-test.run=^TestConformance$/"+m.fails+"$", "-test.count=1")
			cmd.Env = append(os.Environ(), mistakeVariable+"="+name)
			if said, _ := cmd.CombinedOutput(); !strings.Contains(string(said), "--- FAIL: TestConformance/"+m.fails+" (") {
				t.Errorf("%s did not fail:\n%s", m.fails, said)
			}
		})
	}
}
