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

// kept keeps a subscription up for a while. It returns the arguments of Turned, and when
// Run was called.
func kept(t *testing.T, d time.Duration, deaf *atomic.Int64, run func(ctx context.Context, hears func())) (turns []bool, runs []time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	Subscription{
		Run: func(ctx context.Context, hears func()) {
			runs = append(runs, time.Now())
			run(ctx, hears)
		},
		Turned: func(hears bool) { turns = append(turns, hears) },
		Deaf:   deaf, FirstPause: firstPause, LongestPause: longestPause,
	}.Keep(ctx)
	return turns, runs
}

func TestASubscriptionIsKeptUpUntilItsCtxEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		turns, runs := kept(t, time.Minute, nil, func(ctx context.Context, hears func()) {
			hears()
			<-ctx.Done()
		})
		if !slices.Equal(turns, []bool{true}) || len(runs) != 1 || time.Since(began) != time.Minute {
			t.Errorf("turned %v, %d runs in %v; want it to hear once, for a minute", turns, len(runs), time.Since(began))
		}
	})
}

// The backend looks at everything each time that signals begin to come in. Turned(false)
// is called once when they stop.
func TestASubscriptionThatFailsIsMadeAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var deaf atomic.Int64
		var counted []int64
		attempt := 0
		turns, _ := kept(t, time.Minute, &deaf, func(ctx context.Context, hears func()) {
			counted = append(counted, deaf.Load())
			switch attempt++; attempt {
			case 1, 4:
				hears()
				time.Sleep(time.Second)
			case 2, 3:
			default:
				hears()
				hears() // the client has subscribed again by itself
				<-ctx.Done()
			}
		})
		if want := []bool{true, false, true, false, true, true}; !slices.Equal(turns, want) {
			t.Errorf("turned %v, want %v", turns, want)
		}
		if want := []int64{0, 1, 1, 1, 1}; !slices.Equal(counted, want) || deaf.Load() != 0 {
			t.Errorf("deaf %v before each attempt, and %d at the end; want %v and 0", counted, deaf.Load(), want)
		}
	})
}

func TestASubscriptionThatEndsIsNotDeaf(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var deaf atomic.Int64
		turns, runs := kept(t, time.Minute, &deaf, func(context.Context, func()) {})
		if !slices.Equal(turns, []bool{false}) || len(runs) < 30 || deaf.Load() != 0 {
			t.Errorf("turned %v in %d attempts, %d are deaf; want it told once, and none", turns, len(runs), deaf.Load())
		}
	})
}

func TestPausesGrowUntilASubscriptionHasHeardForLong(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hearsFor := time.Duration(0)
		run := func(_ context.Context, hears func()) {
			if hearsFor > 0 {
				hears()
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

// A client's goroutine may call hears when Run has returned.
func TestWhatIsHeardLateDoesNotCount(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var late func()
		turns, _ := kept(t, 20*time.Millisecond, nil, func(_ context.Context, hears func()) {
			if late != nil {
				late()
			}
			late = hears
		})
		if !slices.Equal(turns, []bool{false}) {
			t.Errorf("turned %v, want it deaf", turns)
		}
	})
}
