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

// keepFor calls Keep for d. It returns the arguments of StateChanged, and the times of
// Run.
func keepFor(t *testing.T, d time.Duration, down *atomic.Int64, run func(ctx context.Context, subscribed func())) (states []bool, runs []time.Time) {
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

func TestKeepRunsUntilItsCtxEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		states, runs := keepFor(t, time.Minute, nil, func(ctx context.Context, subscribed func()) {
			subscribed()
			<-ctx.Done()
		})
		if !slices.Equal(states, []bool{true}) || len(runs) != 1 || time.Since(began) != time.Minute {
			t.Errorf("states %v, %d runs in %v; want one subscription for a minute", states, len(runs), time.Since(began))
		}
	})
}

// Keep calls StateChanged(true) for each subscription, and StateChanged(false) once per
// downtime.
func TestKeepSubscribesAgainAfterAFailure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var down atomic.Int64
		var downCounts []int64
		attempt := 0
		states, _ := keepFor(t, time.Minute, &down, func(ctx context.Context, subscribed func()) {
			downCounts = append(downCounts, down.Load())
			switch attempt++; attempt {
			case 1, 4:
				subscribed()
				time.Sleep(time.Second)
			case 2, 3:
			default:
				subscribed()
				subscribed() // the engine's client has subscribed again
				<-ctx.Done()
			}
		})
		if want := []bool{true, false, true, false, true, true}; !slices.Equal(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
		if want := []int64{0, 1, 1, 1, 1}; !slices.Equal(downCounts, want) || down.Load() != 0 {
			t.Errorf("down %v before each attempt, and %d at the end; want %v and 0", downCounts, down.Load(), want)
		}
	})
}

func TestDownIsZeroAfterKeep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var down atomic.Int64
		states, runs := keepFor(t, time.Minute, &down, func(context.Context, func()) {})
		if !slices.Equal(states, []bool{false}) || len(runs) < 30 || down.Load() != 0 {
			t.Errorf("states %v in %d attempts, %d are down; want [false] and 0", states, len(runs), down.Load())
		}
	})
}

func TestPausesGrowUntilASubscriptionWasUpForLongestPause(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		upFor := time.Duration(0)
		run := func(_ context.Context, subscribed func()) {
			if upFor > 0 {
				subscribed()
				time.Sleep(upFor)
			}
		}
		for _, upFor = range []time.Duration{0, longestPause / 2} { // it fails at once, or is up for too short
			_, runs := keepFor(t, time.Minute, nil, run)
			for i, at := range runs[1:] {
				d, most := at.Sub(runs[i])-upFor, min(firstPause<<min(i, 20), longestPause)
				if d < most/2 || d > most {
					t.Errorf("pause %d is %v, want %v, or up to a half less", i, d, most)
				}
			}
		}
		upFor = longestPause
		_, runs := keepFor(t, time.Minute, nil, run)
		for i, at := range runs[1:] {
			if d := at.Sub(runs[i]) - upFor; d > firstPause {
				t.Errorf("pause %d is %v after a subscription that was up", i, d)
			}
		}
	})
}

// An engine's client may call subscribed after Run has returned.
func TestSubscribedHasNoEffectAfterRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var lateSubscribed func()
		states, _ := keepFor(t, 20*time.Millisecond, nil, func(_ context.Context, subscribed func()) {
			if lateSubscribed != nil {
				lateSubscribed()
			}
			lateSubscribed = subscribed
		})
		if !slices.Equal(states, []bool{false}) {
			t.Errorf("states %v, want [false]", states)
		}
	})
}
