package engine

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
)

// A Poller polls, in one goroutine, for changes that the server does not push. It polls
// for waiting claims at their Pace, and for lost leases every LossInterval. Without
// claims it sleeps. After a failed poll the pause doubles.
type Poller struct {
	Claims       *Claims
	Pace         Pace
	LossInterval time.Duration   // the time between two polls of a client that only holds
	PollNow      <-chan struct{} // makes a poll due, even without claims; may be nil

	// Poll polls once, for waiting claims and lost leases. Run does not report its error:
	// a waiter sends its claim again now and then, and gets the same error.
	Poll func(ctx context.Context) error
}

// A Pace returns the pause after a poll for a waiting claim. waited is the time since the
// last change on its name, and ahead the number of claims ahead of it.
type Pace func(waited time.Duration, ahead int) time.Duration

// GrowingPace returns a Pace that grows with the wait: the pause is the time since the
// last change, divided by part. So a waiter detects its grant with a delay of a small
// part of the wait, and a long wait costs few polls. Claims further behind in a queue
// poll less often than the head. Pauses grow up to slow for the head, and up to four
// times slow for the others.
func GrowingPace(quick, slow time.Duration, part int) Pace {
	return func(waited time.Duration, ahead int) time.Duration {
		longest := slow * time.Duration(min(1+ahead, 4))
		d := max(waited/time.Duration(part), quick*time.Duration(1+ahead))
		if d >= longest {
			return longest + backoff.Random(longest/8)
		}
		return d - backoff.Random(d/4)
	}
}

const (
	pollTimeout   = 5 * time.Second
	minRetryPause = 10 * time.Millisecond // after a failed poll
	maxRetryPause = time.Second           // long, because a poll may dial a server that is down
)

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	polledAt, retryAt := time.Now(), time.Time{}
	for failures := 0; ; {
		next, pollNow := p.Claims.nextPoll(polledAt, p.Pace, p.LossInterval), false
		var due <-chan time.Time // nil without claims
		if !next.IsZero() {
			due = time.After(max(time.Until(next), time.Until(retryAt)))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.Claims.pollSooner:
			if next.IsZero() {
				polledAt = time.Now() // the first claim begins its pause now
			}
			continue
		case <-p.PollNow:
			pollNow = true
		case <-due:
		}
		polledAt = time.Now()
		if !p.Claims.Any(polledAt) && !pollNow {
			continue
		}
		pollCtx, cancel := context.WithTimeout(ctx, pollTimeout)
		err := p.Poll(pollCtx)
		cancel()
		if err == nil {
			failures, retryAt = 0, time.Time{}
			continue
		}
		retryAt = time.Now().Add(backoff.Jitter(backoff.Doubled(minRetryPause, failures, maxRetryPause)))
		failures++
	}
}
