package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

const firstPause, longestPause = 10 * time.Millisecond, time.Second

// kept keeps a subscription up for a while. It returns the arguments of StateChanged, and
// when Run was called.
func kept(t *testing.T, d time.Duration, down *atomic.Int64, run func(ctx context.Context, subscribed func())) (states []bool, runs []time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	Subscription{
		Run: func(ctx context.Context, subscribed func()) {
			runs = append(runs, time.Now())
			run(ctx, subscribed)
		},
		StateChanged: func(up bool) { states = append(states, up) },
		Down:         down, FirstPause: firstPause, LongestPause: longestPause,
	}.Keep(ctx)
	return states, runs
}

func TestASubscriptionIsKeptUpUntilItsCtxEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		states, runs := kept(t, time.Minute, nil, func(ctx context.Context, subscribed func()) {
			subscribed()
			<-ctx.Done()
		})
		if !slices.Equal(states, []bool{true}) || len(runs) != 1 || time.Since(began) != time.Minute {
			t.Errorf("states %v, %d runs in %v; want it to hear once, for a minute", states, len(runs), time.Since(began))
		}
	})
}

// The backend reads everything each time that signals begin to arrive. When they stop,
// StateChanged(false) is called once.
func TestASubscriptionThatFailsIsMadeAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var down atomic.Int64
		var counted []int64
		attempt := 0
		states, _ := kept(t, time.Minute, &down, func(ctx context.Context, subscribed func()) {
			counted = append(counted, down.Load())
			switch attempt++; attempt {
			case 1, 4:
				subscribed()
				time.Sleep(time.Second)
			case 2, 3:
			default:
				subscribed()
				subscribed() // the client has subscribed again by itself
				<-ctx.Done()
			}
		})
		if want := []bool{true, false, true, false, true, true}; !slices.Equal(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
		if want := []int64{0, 1, 1, 1, 1}; !slices.Equal(counted, want) || down.Load() != 0 {
			t.Errorf("down %v before each attempt, and %d at the end; want %v and 0", counted, down.Load(), want)
		}
	})
}

func TestASubscriptionThatEndsIsNotDown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var down atomic.Int64
		states, runs := kept(t, time.Minute, &down, func(context.Context, func()) {})
		if !slices.Equal(states, []bool{false}) || len(runs) < 30 || down.Load() != 0 {
			t.Errorf("states %v in %d attempts, %d are down; want one false, and none", states, len(runs), down.Load())
		}
	})
}

func TestPausesGrowUntilASubscriptionHasBeenUpForLong(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hearsFor := time.Duration(0)
		run := func(_ context.Context, subscribed func()) {
			if hearsFor > 0 {
				subscribed()
				time.Sleep(hearsFor)
			}
		}
		for _, hearsFor = range []time.Duration{0, longestPause / 2} { // a failure, and one that was up too short
			_, runs := kept(t, time.Minute, nil, run)
			for i, at := range runs[1:] {
				d, most := at.Sub(runs[i])-hearsFor, min(firstPause<<min(i, 20), longestPause)
				if d < most/2 || d > most {
					t.Errorf("pause %d is %v, want %v, or up to a half less", i, d, most)
				}
			}
		}
		hearsFor = longestPause
		_, runs := kept(t, time.Minute, nil, run)
		for i, at := range runs[1:] {
			if d := at.Sub(runs[i]) - hearsFor; d > firstPause {
				t.Errorf("pause %d is %v after a subscription that had heard", i, d)
			}
		}
	})
}

// A client's goroutine may call subscribed when Run has returned.
func TestASubscriptionThatIsUpLateDoesNotCount(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var late func()
		states, _ := kept(t, 20*time.Millisecond, nil, func(_ context.Context, subscribed func()) {
			if late != nil {
				late()
			}
			late = subscribed
		})
		if !slices.Equal(states, []bool{false}) {
			t.Errorf("states %v, want it down", states)
		}
	})
}
