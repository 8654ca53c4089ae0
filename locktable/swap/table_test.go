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

// values is a Store in memory, as engines have it that can do no more than compare and
// swap. Its clients share it.
type values struct {
	now     func() time.Time
	width   time.Duration // of the windows
	gathers bool
	most    int // bytes in a value; 0: any number

	mu      sync.Mutex // protects all below
	stored  map[string]swap.Stored
	last    uint64
	clients map[string]*locktable.Driver
}

func newValues(now func() time.Time, width time.Duration) *values {
	return &values{now: now, width: width, stored: map[string]swap.Stored{}, clients: map[string]*locktable.Driver{}}
}

// open makes one more client.
func (v *values) open() *locktable.Driver {
	inbox := rand.Text()
	store := swap.Store(&valuesClient{v, inbox})
	if v.gathers {
		store = gathering{&valuesClient{v, inbox}}
	}
	var d *locktable.Driver
	d = locktable.New(swap.New(store, inbox, func(s driver.Signal) { d.Deliver(s) }), inbox)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[inbox] = d
	return d
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
	now, is := v.clock(), v.stored[s.Name]
	switch {
	case v.most > 0 && len(s.Value)+s.ReserveBytes > v.most:
		return swap.Swapped{Err: &driver.Error{Err: errors.New("it is full"), Hint: "use several names", Permanent: true}}
	case now < s.Window.From || now > s.Window.To:
		return swap.Swapped{OutsideWindow: true}
	case is.Version != s.Version:
		return swap.Swapped{HasStored: s.Version%2 == 0, Stored: is} // some stores can say it, some cannot
	}
	v.last++
	v.stored[s.Name] = swap.Stored{Value: s.Value, Version: v.last}
	return swap.Swapped{Done: true, Version: v.last}
}

// swappingAll is a store that can replace several values as one.
type swappingAll struct{ *valuesClient }

func (v swappingAll) SwapAll(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
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

// openAll makes one more client, which grants several names in one step.
func (v *values) openAll() *locktable.GroupedDriver {
	inbox := rand.Text()
	var d *locktable.GroupedDriver
	d = locktable.NewGrouped(swap.New(swappingAll{&valuesClient{v, inbox}}, inbox, func(s driver.Signal) { d.Deliver(s) }), inbox)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[inbox] = d.Driver
	return d
}

// The client loads a name that many wait for before each step, because the value that it
// knows is old.
func TestNoSwapIsInVainOnANameThatManyWaitFor(t *testing.T) {
	v := newValues(time.Now, 40*time.Millisecond)
	one := &counting{valuesClient: &valuesClient{v, "one"}}
	first := locktable.New(swap.New(one, "one", func(driver.Signal) {}), "one")
	second := v.open()
	must(first.Acquire(t.Context(), exclusive(false)))(t)
	own := exclusive(true)
	for range 20 {
		for d, c := range map[*locktable.Driver]driver.Claim{first: own, second: exclusive(true)} {
			if _, err := d.Acquire(t.Context(), c); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
		}
	}
	one.loads, one.swaps = 0, 0
	for range 5 {
		if _, err := second.Acquire(t.Context(), exclusive(true)); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
		if _, err := first.Acquire(t.Context(), own); !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
	}
	if one.loads != 5 || one.swaps != 5 {
		t.Errorf("five steps took %d loads and %d swaps", one.loads, one.swaps)
	}
}

// slowValues is a store whose swaps take a while.
type slowValues struct {
	*valuesClient
	takes time.Duration

	mu          sync.Mutex // protects the rest
	under, most int
	oldest      time.Duration // how old a window was when its swap began
}

func (s *slowValues) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.mu.Lock()
	s.under++
	s.most = max(s.most, s.under)
	s.oldest = max(s.oldest, swaps[0].Window.From.Until(s.clock()))
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	s.under--
	s.mu.Unlock()
	return s.valuesClient.Swap(ctx, swaps)
}

// A step that has to wait for room looks at the clock after that, and is in time.
func TestStepsWaitForRoomBeforeTheirWindowOpens(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &slowValues{valuesClient: &valuesClient{newValues(time.Now, 40*time.Millisecond), "inbox"}, takes: 20 * time.Millisecond}
		d := locktable.New(swap.New(s, "inbox", func(driver.Signal) {}).LimitSwaps(2), "inbox")
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := d.Acquire(t.Context(), exclusiveOn(fmt.Sprint(i))[0]); err != nil {
					t.Error(err)
				}
			})
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		time.Sleep(time.Millisecond)
		_, err := d.Acquire(short, exclusiveOn("another")[0])
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("behind twenty others: %v; want the end of its ctx", err)
		}
		all.Wait()
		if s.most != 2 || s.oldest > 0 {
			t.Errorf("%d at once, and a window was %v old; want 2, and new ones", s.most, s.oldest)
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

// gathering is a store that takes the swaps of several goroutines in one request.
type gathering struct{ *valuesClient }

func (gathering) DelaysWrites()           {}
func (gathering) Fit(all []swap.Swap) int { return min(len(all), 3) }

// A full entry does not hinder those that hold its name or wait for it.
func TestAnEntryThatIsFull(t *testing.T) {
	v := newValues(time.Now, time.Second)
	v.most = 100_000
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

// With a window everything lasts a little longer. Steps that share a request are taken as
// those that have one each.
func TestConformanceInAWindow(t *testing.T) {
	v := newValues(time.Now, 40*time.Millisecond)
	v.gathers = true
	drivertest.Run(t, drivertest.Harness{
		Open:      func(testing.TB) driver.Driver { return v.open() },
		Unit:      400 * time.Millisecond,
		NoNetwork: true,
	})
}
