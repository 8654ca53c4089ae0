// Package watching keeps a mark in the backend on each name that a client watches. It is
// for backends that push signals. A client that changes a marked name sends a signal to
// all clients that marked it.
package watching

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Subscribe makes signals arrive until stop is called. It calls f(true) each time that
// signals can arrive again, and f(false) each time that they cannot. It does not block.
type Subscribe func(f func(up bool)) (stop func())

// Mark marks names as watched, each with its token, for at least Keep. It returns for
// each name whether it was still marked, and whether it is marked now.
type Mark func(ctx context.Context, tokens []driver.Token, names []string) (known, ok []bool, err error)

// A mark expires, and is renewed before that. A client that finds its mark missing (the
// name was deleted, or the clock has jumped) reads the name.
const (
	Keep              = 20 * time.Second // marks are renewed after half to all of this time
	markTimeout       = 5 * time.Second  // the timeout of one renewal
	markRetryPause    = 100 * time.Millisecond
	markRetryMaxPause = time.Minute // the longest pause after failures: some clients may only read
)

// Watching is a driver's list of watched names. One goroutine marks them all.
type Watching struct {
	subscribe Subscribe
	mark      Mark

	ctx        context.Context
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
	wake       chan struct{} // capacity 1
	unreported atomic.Bool   // the changes of at least one watched name are not reported

	mu      sync.Mutex // protects the fields below, but not those of a watch, which only run uses
	byToken map[driver.Token]*watch
	running bool
	up      bool
	changes int // the number of times that signals began or ceased to arrive
}

type watch struct {
	token  driver.Token
	name   string
	notify func()
	until  time.Time // the name is marked at least until then
	ok     bool      // the last attempt to mark it succeeded
}

// New returns a Watching without names.
func New(subscribe Subscribe, mark Mark) *Watching {
	w := &Watching{subscribe: subscribe, mark: mark, wake: make(chan struct{}, 1), byToken: map[driver.Token]*watch{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Watch marks name, and calls f after changes, until stop (driver.Watchers.OnFirstWatch).
func (w *Watching) Watch(name string, f func()) (stop func()) {
	x := &watch{token: driver.NewToken(), name: name, notify: f, ok: true}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byToken[x.token] = x
	if !w.running && w.ctx.Err() == nil {
		w.running = true
		w.goroutines.Go(w.run)
	}
	w.wakeLoop()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byToken, x.token) // the mark ends by itself
		w.wakeLoop()
	}
}

func (w *Watching) wakeLoop() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Notify calls the function of the watch with that token, because its name has changed.
func (w *Watching) Notify(token driver.Token) {
	w.mu.Lock()
	x := w.byToken[token]
	w.mu.Unlock()
	if x != nil {
		x.notify()
	}
}

// MissesChanges reports whether changes of any watched name are not reported.
func (w *Watching) MissesChanges() bool { return w.unreported.Load() }

// Close stops the goroutine, and waits for its end.
func (w *Watching) Close() {
	w.cancel()
	w.goroutines.Wait()
}

// run keeps all watched names marked until there are none.
func (w *Watching) run() {
	stop := w.subscribe(w.setState)
	defer stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for failures, reportedChanges := 0, 0; ; {
		watches, up, changes := w.snapshot()
		if watches == nil {
			return
		}
		next := time.Hour // until signals arrive
		if up {
			if next = w.markDue(watches); next > 0 {
				failures = 0
			} else {
				next = backoff.JitterUp(backoff.Doubled(markRetryPause, failures, markRetryMaxPause))
				failures++
			}
		}
		// Before the first call of setState, changes count as reported.
		unreported := !up && changes > 0 || slices.ContainsFunc(watches, func(x *watch) bool { return !x.ok })
		if w.unreported.Swap(unreported) != unreported || changes != reportedChanges {
			reportedChanges = changes
			for _, x := range watches {
				x.notify() // the watch reads the name and PushesChanges
			}
		}
		timer.Reset(next)
		select {
		case <-w.ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// setState records whether signals arrive.
func (w *Watching) setState(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changes > 0 && w.up == up {
		return
	}
	w.up = up
	w.changes++
	w.wakeLoop()
}

// snapshot returns the watches for run. If there are none, run ends.
func (w *Watching) snapshot() (all []*watch, up bool, changes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all = slices.Collect(maps.Values(w.byToken)); all == nil {
		w.running, w.up, w.changes = false, false, 0
		w.unreported.Store(false)
	}
	return all, w.up, w.changes
}

// markDue renews the marks that are due, and returns the time until the next one is due;
// 0 if a name could not be marked.
func (w *Watching) markDue(all []*watch) (next time.Duration) {
	now := time.Now()
	due := slices.DeleteFunc(slices.Clone(all), func(x *watch) bool { return x.until.After(now) })
	if len(due) > 0 && w.markTogether(due) != nil && (len(due) == 1 || !w.markEach(due)) {
		return 0
	}
	next = time.Hour
	for _, x := range all {
		next = min(next, x.until.Sub(now))
	}
	return max(next, time.Millisecond)
}

// markEach marks names one by one if they could not be marked together, because one of
// them may be damaged. Damage is reported at once. The first timeout ends markEach: the
// backend hangs, and all watches must soon learn that changes are not reported.
func (w *Watching) markEach(due []*watch) (ok bool) {
	ok = true
	for one := range slices.Chunk(due, 1) {
		err := w.markTogether(one)
		ok = ok && err == nil
		if w.ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return ok
}

// markTogether marks names, and notifies the watches whose mark was missing. After an
// error their changes are not reported. A timeout is always [context.DeadlineExceeded],
// whatever error the backend returned.
func (w *Watching) markTogether(due []*watch) error {
	ctx, cancel := context.WithTimeout(w.ctx, markTimeout)
	defer cancel()
	tokens, names := make([]driver.Token, len(due)), make([]string, len(due))
	for i, x := range due {
		tokens[i], names[i] = x.token, x.name
	}
	until := time.Now().Add(backoff.JitterDown(Keep))
	known, ok, err := w.mark(ctx, tokens, names)
	for i, x := range due {
		x.ok = err == nil && ok[i]
		if x.until = until; err != nil {
			x.until = time.Time{}
		}
		if err == nil && !known[i] {
			x.notify() // something may have changed without a signal
		}
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
