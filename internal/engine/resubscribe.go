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
	// Run subscribes, and calls hears once the subscription is up: messages sent from
	// then on arrive. It returns when the subscription has failed or ctx has ended. If
	// the engine's client subscribes again by itself, Run calls hears each time.
	Run func(ctx context.Context, hears func())

	// Turned reports whether the subscription is up, and must not block. Each call of
	// hears calls Turned(true): earlier messages may be lost, so the backend has to poll.
	// The first failure after that calls Turned(false).
	Turned func(hears bool)

	// Deaf, if not nil, counts the subscriptions that have failed and are not up again
	// yet.
	Deaf *atomic.Int64

	// FirstPause is the pause after the first failure. It doubles with each further
	// failure, up to LongestPause. A subscription that was up for LongestPause resets it.
	FirstPause, LongestPause time.Duration
}

// Keep subscribes, and subscribes again after each failure, until ctx ends.
func (s Subscription) Keep(ctx context.Context) {
	if s.Deaf == nil {
		s.Deaf = new(atomic.Int64)
	}
	deaf := false
	for failures := 0; ctx.Err() == nil; failures++ {
		var mu sync.Mutex // protects the variables below, and deaf while Run runs
		var heard time.Time
		over := false // Run has returned; an engine's client may still call hears
		s.Run(ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if over {
				return
			}
			if heard.IsZero() {
				heard = time.Now()
			}
			if deaf {
				deaf = false
				s.Deaf.Add(-1)
			}
			s.Turned(true)
		})
		mu.Lock()
		over = true
		mu.Unlock()
		if ctx.Err() == nil && !deaf {
			deaf = true
			s.Deaf.Add(1)
			s.Turned(false)
		}
		if !heard.IsZero() && time.Since(heard) >= s.LongestPause {
			failures = 0
		}
		_ = backoff.Wait(ctx, backoff.Early(backoff.Doubled(s.FirstPause, failures, s.LongestPause)))
	}
	if deaf {
		s.Deaf.Add(-1)
	}
}
