package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// A Subscription describes what a server pushes to this client, and how the client
// subscribes again after a failure.
type Subscription struct {
	// Run subscribes, and calls subscribed once the subscription is up: messages sent
	// from then on arrive. It returns when the subscription has failed or ctx has ended.
	// If the engine's client subscribes again by itself, Run calls subscribed each time.
	Run func(ctx context.Context, subscribed func())

	// StateChanged takes the new state of the subscription, and must not block. Each call
	// of subscribed calls StateChanged(true): earlier messages may be lost, so the
	// backend has to poll. The first failure, at the start or after a success, calls
	// StateChanged(false).
	StateChanged func(up bool)

	// Down, if not nil, counts the subscriptions that have failed and are not up again.
	Down *atomic.Int64

	// FirstPause is the pause after the first failure. It doubles with each further
	// failure, up to LongestPause. A subscription that was up for LongestPause resets it.
	FirstPause, LongestPause time.Duration
}

// Keep subscribes, and subscribes again after each failure, until ctx ends.
func (s Subscription) Keep(ctx context.Context) {
	if s.Down == nil {
		s.Down = new(atomic.Int64)
	}
	down := false
	for failures := 0; ctx.Err() == nil; failures++ {
		var mu sync.Mutex // protects the variables below, and down while Run runs
		var upSince time.Time
		ended := false // Run has returned; an engine's client may still call subscribed
		s.Run(ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if ended {
				return
			}
			if upSince.IsZero() {
				upSince = time.Now()
			}
			if down {
				down = false
				s.Down.Add(-1)
			}
			s.StateChanged(true)
		})
		mu.Lock()
		ended = true
		mu.Unlock()
		if ctx.Err() == nil && !down {
			down = true
			s.Down.Add(1)
			s.StateChanged(false)
		}
		if !upSince.IsZero() && time.Since(upSince) >= s.LongestPause {
			failures = 0
		}
		_ = backoff.Wait(ctx, backoff.JitterDown(backoff.Doubled(s.FirstPause, failures, s.LongestPause)))
	}
	if down {
		s.Down.Add(-1)
	}
}
