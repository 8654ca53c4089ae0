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
	// Run subscribes, calls hears when messages sent from then on will arrive, and
	// returns when the subscription has failed or ctx has ended. A client that subscribes
	// again by itself calls hears each time.
	Run func(ctx context.Context, hears func())

	// Turned must not block. A call of hears calls it with true: earlier messages may be
	// lost, so the backend looks at everything. After a failure Keep calls it with false,
	// but only once before the next call of hears.
	Turned func(hears bool)

	// Deaf, if not nil, counts the subscriptions that have failed and are not up again
	// yet.
	Deaf *atomic.Int64

	// FirstPause comes after the first failure, and pauses up to LongestPause come after
	// the next ones. Failures before a subscription that was up for LongestPause do not
	// count.
	FirstPause, LongestPause time.Duration
}

// Keep keeps the subscription up until ctx ends.
func (s Subscription) Keep(ctx context.Context) {
	if s.Deaf == nil {
		s.Deaf = new(atomic.Int64)
	}
	deaf := false
	for failures := 0; ctx.Err() == nil; failures++ {
		var mu sync.Mutex // protects what follows, and deaf while Run runs
		var heard time.Time
		over := false // a client may call hears late
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
