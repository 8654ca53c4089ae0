package pawl

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/clock"
	"github.com/pawl-go/pawl/internal/inbox"
	"github.com/pawl-go/pawl/internal/keepalive"
	"github.com/pawl-go/pawl/internal/localqueue"
	"github.com/pawl-go/pawl/internal/returner"
)

// A core makes, keeps and ends the claims of a client. The methods for users build on it.
type core struct {
	driver     driver.Driver
	backend    string            // the backend's name and location, for messages
	properties driver.Properties // the Properties of the driver at the beginning
	isSignaler bool              // driver.As finds a Signaler; a wrapper without Unwrap hides that its backend pushes
	settings   settings
	observer   *Observer
	now        func() clock.Reading
	epoch      time.Time // the instant from which claim.lateAttemptEnd and leaseState.beginOffset count

	queues   *localqueue.Queues[*claim]
	inboxes  *inbox.Inboxes[*hold]
	renewals *keepalive.Renewals[*hold]
	returner *returner.Returner[*claim] // unconfirmed releases, lost leases, unknown outcomes, and at Close all leases

	claims       *calls             // calls that claim; no call enters once Close or Shutdown has begun
	releases     *calls             // calls of Release, Confirm and SetValue; no call enters once Close ends the leases
	functions    *calls             // functions of Do that run
	closing      context.Context    // ends when Close or Shutdown begins: waiters give up
	beginClosing context.CancelFunc // cancels closing

	// For Close and Shutdown.
	stopRenewing  context.CancelFunc
	renewingEnded chan struct{} // closed when the goroutine that renews has ended
	stopListen    func()
	done          chan struct{} // closed when Close has ended
	answer        error         // the result of Close; written before done is closed

	mu         sync.Mutex // protects closed and drained
	closed     bool
	drained    bool           // no goroutine is added to background any more
	background sync.WaitGroup // renewals, health checks, calls of the Observer, releases of a failed Group
}

func newCore(d driver.Driver, s settings, now func() clock.Reading) *core {
	p := d.Properties()
	after := func(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }
	c := &core{
		driver: d, backend: cmp.Or(p.Location, p.Backend), properties: p, settings: s, observer: s.Observer, now: now, epoch: time.Now(),
		queues: localqueue.New[*claim](time.Now(), s.HandoffWindow, after), inboxes: inbox.New[*hold](), renewals: keepalive.NewRenewals[*hold](now()),
		claims: newCalls(), releases: newCalls(), functions: newCalls(),
		renewingEnded: make(chan struct{}), stopListen: func() {}, done: make(chan struct{}),
	}
	c.closing, c.beginClosing = context.WithCancel(context.Background())
	c.closing.Done() // makes the channel here, not in the synctest bubble of a test that shares the client
	c.returner = returner.New(returner.MaxInFlight, c.releaseAgain)
	return c
}

// pushesGrants reports whether signals arrive; if not, waiters have to poll.
func (c *core) pushesGrants() bool { return c.isSignaler && c.driver.Properties().PushesGrants }

// checkOpen returns ErrClosed once Close has begun. Before, it returns ctx's error.
func (c *core) checkOpen(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return ctx.Err()
}

func (c *core) isClosing() bool { return c.closing.Err() != nil }

// pause waits for d, or until something has changed, or the client or ctx ends.
func (c *core) pause(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-changed:
	case <-c.closing.Done():
	case <-ctx.Done():
	}
}

// runInBackground runs f on its own goroutine. Close waits for f unless drained is set.
func (c *core) runInBackground(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained {
		go f()
		return
	}
	c.background.Go(f)
}

// reportFailedInBackground reports a failed request to the Observer, on a goroutine of
// its own: the client's own goroutines must not wait for the Observer.
func (c *core) reportFailedInBackground(e Event, op Op, count int, err error) {
	if c.observer != nil && c.observer.Failed != nil {
		c.runInBackground(func() { c.observer.reportFailed(e, op, count, err) })
	}
}

// releaseUnknown gives up the lease and the place in the queue of a claim whose outcome
// is unknown or no longer wanted. The returner releases the claim at once, so that no
// waiter waits for it, and again when no Acquire of its token can arrive any more.
func (c *core) releaseUnknown(cl *claim) {
	ttl := max(cl.TTL, cl.QueueTTL)
	c.returner.Add(&returner.Return[*claim]{
		Claim: cl, Lease: driver.LeaseRef{Name: cl.Name, Token: cl.Token}, TTL: cl.TTL,
		ReleaseAgainAt: c.releaseAgainAt(cl), Until: c.expiresAt(cl, time.Now(), ttl),
	})
}

// releaseAgainAt returns the time of the second release of a claim: from then on, none of
// its attempts can take effect any more, on any node of the backend. The time is zero if
// all attempts were answered.
func (c *core) releaseAgainAt(cl *claim) time.Time {
	if cl.lateAttemptEnd == 0 {
		return time.Time{}
	}
	return c.epoch.Add(cl.lateAttemptEnd + driver.MaxLead)
}

// expiresAt returns the time at which all leases and places of a claim have expired, even
// if an attempt still takes effect at the latest possible time.
func (c *core) expiresAt(cl *claim, now time.Time, ttl time.Duration) time.Time {
	if end := c.releaseAgainAt(cl); end.After(now) {
		now = end
	}
	return now.Add(ttl + c.properties.MaxOverrun)
}

func (c *core) releaseAgain(ctx context.Context, x *returner.Return[*claim], sent time.Time) (returner.Outcome, error) {
	attempt := c.settings.requestContext(ctx, nil, x.TTL, sent)
	defer attempt.Cancel()
	err := c.driver.Release(attempt, x.Lease)
	if err == nil || errors.Is(err, driver.ErrNoSuchLease) {
		return returner.Done, nil
	}
	if ctx.Err() != nil {
		err = errNoAnswer // Close has waited long enough
	}
	err = unavailable(c.backend, "release", x.Lease.Name, err)
	c.reportFailedInBackground(x.Claim.lateEvent(), "release", 1, err)
	if errors.Is(err, ErrClosed) || isPermanent(err) {
		return returner.Unanswerable, err
	}
	return returner.Failed, err
}

// calls counts the calls of one kind that are under way, so that Close and Shutdown can
// wait for them. It is a sync.WaitGroup that can be shut; after that, no call enters.
type calls struct {
	n                  atomic.Int64 // the number of calls under way; after shut, plus shutCalls
	shutOnce, idleOnce sync.Once

	idle chan struct{} // closed when calls is shut and the last call has left
}

const shutCalls = math.MinInt64 / 2

func newCalls() *calls { return &calls{idle: make(chan struct{})} }

// enter counts a call. It returns false if calls is shut.
func (c *calls) enter() bool {
	if c.n.Add(1) > 0 {
		return true
	}
	c.leave()
	return false
}

func (c *calls) leave() {
	if c.n.Add(-1) == shutCalls {
		c.idleOnce.Do(func() { close(c.idle) })
	}
}

// underWay returns the number of calls that are still under way, after shut.
func (c *calls) underWay() int { return int(c.n.Load() - shutCalls) }

// shut makes enter return false, and returns a channel that is closed when the last call
// has left.
func (c *calls) shut() <-chan struct{} {
	c.shutOnce.Do(func() {
		c.n.Add(shutCalls + 1) // adds one call and ends it, so that leave closes idle if there is no other call
		c.leave()
	})
	return c.idle
}
