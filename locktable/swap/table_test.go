package swap_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
	"github.com/pawl-go/pawl/memlock"
)

// values is a Store in memory that can only compare and swap. Its clients share it.
type values struct {
	now     func() time.Time
	width   time.Duration // of the windows
	gathers bool
	maxSize int // the largest size of a value; 0 means no limit

	mu      sync.Mutex // protects the fields below
	stored  map[string]swap.Stored
	last    uint64
	clients map[string]*locktable.Driver
}

func newValues(now func() time.Time, width time.Duration) *values {
	return &values{now: now, width: width, stored: map[string]swap.Stored{}, clients: map[string]*locktable.Driver{}}
}

// open makes another client.
func (v *values) open() *locktable.Driver {
	inbox := rand.Text()
	store := swap.Store(&valuesClient{v, inbox})
	if v.gathers {
		store = gatheringClient{&valuesClient{v, inbox}}
	}
	return v.connect(inbox, store).Driver
}

// connect makes a driver over a client's store. The driver gets the signals for inbox.
func (v *values) connect(inbox string, store swap.Store) *locktable.GroupedDriver {
	var d *locktable.GroupedDriver
	d = locktable.NewGrouped(swap.New(store, inbox, func(s driver.Signal) { d.Deliver(s) }), inbox)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[inbox] = d.Driver
	return d
}

// newDriver makes a driver over a store that gets no signals.
func newDriver(store swap.Store) *locktable.Driver {
	return locktable.New(swap.New(store, "inbox", func(driver.Signal) {}), "inbox")
}

type valuesClient struct {
	*values
	inbox string
}

func (v *values) clock() locktable.Instant { return locktable.At(v.now()) }

func (v *valuesClient) Time(context.Context) (swap.Window, error) {
	now := v.clock()
	return swap.Window{From: now, To: now.Add(v.width)}, nil
}

func (v *valuesClient) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]swap.Stored, len(names))
	for i, name := range names {
		all[i] = v.stored[name]
	}
	return all, ctx.Err()
}

func (v *valuesClient) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done := make([]swap.Swapped, len(swaps))
	for i, s := range swaps {
		if done[i] = v.swap(s); done[i].Done {
			v.send(s.Signals)
		}
	}
	return done, nil
}

func (v *values) send(signals []locktable.Signal) {
	for _, to := range signals {
		v.mu.Lock()
		d := v.clients[to.Inbox]
		v.mu.Unlock()
		if d != nil {
			d.Deliver(to.Signal)
		}
	}
}

func (v *values) swap(s swap.Swap) swap.Swapped {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.swapLocked(s)
}

func (v *values) swapLocked(s swap.Swap) swap.Swapped {
	now, stored := v.clock(), v.stored[s.Name]
	switch {
	case v.maxSize > 0 && len(s.Value)+s.ReserveBytes > v.maxSize:
		return swap.Swapped{Err: &driver.Error{Err: errors.New("it is full"), Hint: "use several names", Permanent: true}}
	case now < s.Window.From || now > s.Window.To:
		return swap.Swapped{OutsideWindow: true}
	case stored.Version != s.Version:
		return swap.Swapped{HasStored: s.Version%2 == 0, Stored: stored} // as only some stores do
	}
	v.last++
	v.stored[s.Name] = swap.Stored{Value: s.Value, Version: v.last}
	return swap.Swapped{Done: true, Version: v.last}
}

// allClient is an AllSwapper.
type allClient struct{ *valuesClient }

func (v allClient) SwapAll(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done, all := v.swapAll(swaps)
	for i := range swaps {
		if all {
			v.send(swaps[i].Signals)
		}
	}
	return done, nil
}

func (v *values) swapAll(swaps []swap.Swap) (done []swap.Swapped, all bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := maps.Clone(v.stored)
	for _, s := range swaps {
		done = append(done, v.swapLocked(s))
	}
	if !slices.ContainsFunc(done, func(d swap.Swapped) bool { return !d.Done }) {
		return done, true
	}
	v.stored = before
	for i, d := range done {
		if d.Done {
			done[i] = swap.Swapped{}
		}
	}
	return done, false
}

// openAll makes another client, which grants several names in one step.
func (v *values) openAll() *locktable.GroupedDriver {
	inbox := rand.Text()
	return v.connect(inbox, allClient{&valuesClient{v, inbox}})
}

// If a name has many waiters, the value that a client knows is soon outdated. So the
// client loads the value before each step, unless it has just stored it.
func TestNoSwapFailsOnANameWithManyWaiters(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		v := newValues(time.Now, 40*time.Millisecond)
		one := &countingClient{valuesClient: &valuesClient{v, "inbox"}}
		first := newDriver(one)
		second := v.open()
		wantQueued := func(d *locktable.Driver, c driver.Claim) {
			if _, err := d.Acquire(t.Context(), c); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 100)
		}
		must(first.Acquire(t.Context(), tryClaim()))(t)
		own := queuedClaim()
		for range 20 {
			wantQueued(first, own)
			wantQueued(second, queuedClaim())
		}
		one.loads, one.swaps = 0, 0
		for range 5 {
			wantQueued(second, queuedClaim())
			wantQueued(first, own)
		}
		if one.loads != 5 || one.swaps != 5 {
			t.Errorf("five steps took %d loads and %d swaps", one.loads, one.swaps)
		}
		one.loads = 0
		for range 2 {
			if _, err := first.Acquire(t.Context(), queuedClaim()); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
		}
		if one.loads > 1 {
			t.Error("the client loads what it has just stored")
		}
	})
}

// slowValues is a store whose swaps take some time.
type slowValues struct {
	*valuesClient
	swapTime time.Duration

	mu                    sync.Mutex // protects the fields below
	inFlight, maxInFlight int
	oldestWindow          time.Duration // the greatest age of a window when its swap began
}

func (s *slowValues) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.mu.Lock()
	s.inFlight++
	s.maxInFlight = max(s.maxInFlight, s.inFlight)
	s.oldestWindow = max(s.oldestWindow, swaps[0].Window.From.Until(s.clock()))
	s.mu.Unlock()
	time.Sleep(s.swapTime)
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
	return s.valuesClient.Swap(ctx, swaps)
}

// A step waits for a free slot before it reads the clock, so its window is not outdated.
func TestStepsWaitForASlotBeforeTheirWindowBegins(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &slowValues{valuesClient: &valuesClient{newValues(time.Now, 40*time.Millisecond), "inbox"}, swapTime: 20 * time.Millisecond}
		d := locktable.New(swap.New(s, "inbox", func(driver.Signal) {}).LimitSwaps(2), "inbox")
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := d.Acquire(t.Context(), exclusiveClaims(fmt.Sprint(i))[0]); err != nil {
					t.Error(err)
				}
			})
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		time.Sleep(time.Millisecond)
		_, err := d.Acquire(short, exclusiveClaims("another")[0])
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("behind twenty other claims: %v; want the end of its ctx", err)
		}
		all.Wait()
		if s.maxInFlight != 2 || s.oldestWindow > 0 {
			t.Errorf("%d swaps at once, and a window was %v old; want 2, and 0", s.maxInFlight, s.oldestWindow)
		}
	})
}

func (v *valuesClient) Scan(_ context.Context, prefix string) iter.Seq2[swap.Named, error] {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []swap.Named
	for name, s := range v.stored {
		if strings.HasPrefix(name, prefix) {
			all = append(all, swap.Named{Name: name, Stored: s, Now: v.clock()})
		}
	}
	slices.SortFunc(all, func(a, b swap.Named) int { return strings.Compare(a.Name, b.Name) })
	return func(yield func(swap.Named, error) bool) {
		for _, n := range all {
			if !yield(n, nil) {
				return
			}
		}
	}
}

func (v *valuesClient) Properties() driver.Properties {
	return driver.Properties{Backend: "values", Clock: driver.ClockServer, FenceSurvives: driver.FencesRiseInProcess, MinTTL: driver.MinTTL, PushesGrants: true}
}

func (v *valuesClient) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.clients, v.inbox)
	return nil
}

// gatheringClient is a Gatherer.
type gatheringClient struct{ *valuesClient }

func (gatheringClient) DelaysWrites()           {}
func (gatheringClient) Fit(all []swap.Swap) int { return min(len(all), 3) }

// A full entry does not hinder the holders and waiters of its name.
func TestAFullEntryHindersNoHolderOrWaiter(t *testing.T) {
	v := newValues(time.Now, time.Second)
	v.maxSize = 100_000
	drivertest.Full(t, "several names", v.open(), v.open())
}

func TestConformance(t *testing.T) {
	clock := memlock.NewClock(time.Now())
	v := newValues(clock.Now, 0)
	drivertest.Run(t, drivertest.Harness{
		Open:      func(testing.TB) driver.Driver { return v.openAll() },
		Clock:     clock,
		NoNetwork: true,
		AtomicAll: true,
	})
}

// Here leases last longer by a window, and steps share requests.
func TestConformanceInAWindow(t *testing.T) {
	v := newValues(time.Now, 40*time.Millisecond)
	v.gathers = true
	drivertest.Run(t, drivertest.Harness{
		Open:      func(testing.TB) driver.Driver { return v.open() },
		Unit:      400 * time.Millisecond,
		NoNetwork: true,
	})
}
