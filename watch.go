package pawl

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// Watch yields the entry of a name: at once, and each time that it has changed. A renewal
// is not a change, and neither is the passing of time. Watch may skip some of several
// quick changes, but never the last.
//
// Where the backend pushes changes (see Properties.PushesChanges), Watch reads the entry
// when the backend reports a change or a lease ends by itself, and at least every 5 s.
// Elsewhere it polls every 50 ms to 1 s. So while nothing changes, a watch costs one
// request each 5 s where changes are pushed, and one a second elsewhere. While the name
// changes all the time, it costs 100 requests a second at most.
// docs/internals/guarantees.md says what the push itself costs.
//
// Watch ends when ctx does, without an error, or when the caller leaves the loop. It
// repeats a request that fails, or is not answered within 5 s (or
// Options.RequestTimeout). If the failure lasts for Options.RetryFor, Watch yields the
// error once, with the zero Entry, because the state is unknown, and goes on. The next
// entry shows that the backend answers again. After an error that a retry cannot cure
// ([BackendError].Permanent, ErrClosed, ErrInvalid), Watch ends.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if !c.isMade() {
			yield(Entry{}, errNotMade)
			return
		}
		stored, err := c.stored(name)
		if err == nil && ctx == nil {
			err = errNoContext
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		w := watch{c: c, name: name, changed: make(chan struct{}, 1)}
		if d, ok := driver.As[driver.Watcher](c.driver); ok {
			w.isWatcher = true
			defer d.Watch(stored, w.onChange)()
		}
		for stateUnknown := true; ; {
			e, changed, err := w.readEntry(ctx)
			if ctxErr(ctx) != nil {
				return
			}
			if err != nil {
				if !yield(Entry{}, err) || isPermanent(err) || c.isClosing() {
					return
				}
				stateUnknown, w.yieldedErr = true, true
				continue
			}
			if (stateUnknown || changed) && !yield(e, nil) {
				return
			}
			stateUnknown = false
			if !w.wait(ctx) {
				yield(Entry{}, ErrClosed)
				return
			}
		}
	}
}

// A watch is one loop over Watch.
type watch struct {
	c       *Client
	name    string
	changed chan struct{} // capacity 1: a change that was not read yet

	last         Entry
	lastRead     time.Time // when the last read began
	unchanged    int       // reads in a row that found nothing new
	fails        int       // failed reads in a row
	failingSince time.Time
	yieldedErr   bool // Watch has yielded the error of the failing reads
	isWatcher    bool // the driver is a Watcher; Properties say whether its backend pushes
}

// onChange reports a change. The driver calls it, so it must not block.
func (w *watch) onChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// readEntry reads the entry, and retries while the backend fails: for RetryFor at first,
// and without a limit once the caller knows of the failure.
func (w *watch) readEntry(ctx context.Context) (e Entry, changed bool, err error) {
	for {
		if rest := minWatchInterval - time.Since(w.lastRead); rest > 0 { // a pushed change may have ended the pause
			w.c.pause(ctx, rest, nil)
		}
		w.lastRead = time.Now()
		e, err = w.inspect(ctx)
		if err == nil {
			break
		}
		if w.fails == 0 {
			w.failingSince = time.Now()
		}
		w.fails++
		if ctxErr(ctx) != nil || w.c.isClosing() || isPermanent(err) || !w.yieldedErr && time.Since(w.failingSince) >= w.c.settings.RetryFor {
			return e, false, err
		}
		w.c.pause(ctx, backoff.JitterDown(backoff.Doubled(10*time.Millisecond, w.fails, time.Second)), w.changed)
	}
	changed = !sameEntries(&e, &w.last)
	w.last, w.fails, w.yieldedErr = e, 0, false
	if w.unchanged++; changed {
		w.unchanged = 0
	}
	return e, changed, nil
}

// inspect reads the entry within a time limit, so that a lost answer does not stop the
// watch.
func (w *watch) inspect(ctx context.Context) (Entry, error) {
	bounded := lazyctx.WithDeadline(ctx, time.Now().Add(cmp.Or(w.c.settings.RequestTimeout, watchInterval)))
	defer bounded.Cancel()
	e, err := w.c.Inspect(bounded, w.name)
	if err != nil && ctxErr(ctx) == nil { // ctx goes on, so if bounded ended, the backend was too slow
		err = unavailable(w.c.backend, "read", w.c.space+w.name, err)
	}
	return e, err
}

const (
	minWatchInterval = 10 * time.Millisecond // the shortest time between two reads, however quickly a name changes
	watchInterval    = 5 * time.Second       // the longest time, and the limit of one read unless RequestTimeout is set
)

// wait waits until another read makes sense. It returns false when the client closes.
func (w *watch) wait(ctx context.Context) bool {
	d := watchInterval
	if !w.isWatcher || !w.c.driver.Properties().PushesChanges {
		d = backoff.JitterDown(backoff.GrownByHalf(50*time.Millisecond, w.unchanged, time.Second))
	}
	for _, h := range w.last.Holders {
		d = min(d, h.ExpiresIn)
	}
	for _, x := range w.last.Waiters {
		d = min(d, x.ExpiresIn)
	}
	if w.last.ClosedFor > 0 {
		d = min(d, w.last.ClosedFor)
	}
	w.c.pause(ctx, max(d, minWatchInterval), w.changed)
	return !w.c.isClosing()
}

// sameEntries reports whether two entries of a name differ at most in times and renewals.
func sameEntries(a, b *Entry) bool {
	return a.Fence == b.Fence && a.ClosedFor > 0 == (b.ClosedFor > 0) &&
		a.ValueFence == b.ValueFence && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Holders, b.Holders, func(x, y Holder) bool {
			return x.Fence == y.Fence && x.Permits == y.Permits && x.Limit == y.Limit && x.Released == y.Released
		}) &&
		slices.EqualFunc(a.Waiters, b.Waiters, func(x, y Waiter) bool {
			return x.Permits == y.Permits && x.Limit == y.Limit && x.Owner.Client == y.Owner.Client && x.Since.Equal(y.Since)
		})
}

// WaitUntilFree returns when the name is free: it is not held, waited for or closed. It
// takes no lock and no place in the queue, so the name may be held again a moment later.
// To run something while no other client holds the name, use [Mutex.Do]. WaitUntilFree
// costs as much as [Client.Watch].
//
// ctx bounds the wait. The error matches ctx's, and also ErrHeld when a deadline ended
// the wait; ErrUnavailable when the backend failed for longer than Options.RetryFor; and
// ErrInvalid or ErrClosed.
func (c *Client) WaitUntilFree(ctx context.Context, name string) error {
	var lastErr error
	for e, err := range c.Watch(ctx, name) {
		if err != nil {
			return err
		}
		if len(e.Holders) == 0 && len(e.Waiters) == 0 && e.ClosedFor == 0 {
			return nil
		}
		held := &HeldError{Name: c.StoredName(name), Holders: len(e.Holders), ClosedFor: e.ClosedFor}
		if held.Holders > 0 {
			held.Holder = e.Holders[0]
		}
		lastErr = held
	}
	return gaveUp(ctx, c.StoredName(name), lastErr)
}
