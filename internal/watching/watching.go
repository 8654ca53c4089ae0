// Package watching keeps a mark in the backend on each name that a client watches. It is
// for backends that push signals. A client that changes a marked name sends a signal to
// all clients that have marked it.
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

// A mark ends by itself, and is renewed before that. A client that finds its mark missing
// (the name was deleted, or the clock has jumped) reads the name.
const (
	Keep              = 20 * time.Second // after this, or up to half of it sooner, marks are renewed
	markTimeout       = 5 * time.Second  // how long that may take
	markRetryPause    = 100 * time.Millisecond
	markRetryMaxPause = time.Minute // the longest pause after failures: some clients may only read
)

// Watching is a driver's list of watched names. One goroutine marks them all.
type Watching struct {
	subscribe Subscribe
	markAll   Mark

	life       context.Context
	end        context.CancelFunc
	loops      sync.WaitGroup
	wake       chan struct{} // holds one
	unreported atomic.Bool   // the changes of some watched name are not reported

	mu      sync.Mutex // protects what follows, and not the fields of a watch, which only run uses
	all     map[driver.Token]*watch
	runs    bool
	up      bool
	changes int // how often signals began or ceased to arrive
}

type watch struct {
	token  driver.Token
	name   string
	notify func()
	until  time.Time // it is surely marked until then
	ok     bool      // the last attempt to mark it succeeded
}

// New watches no name yet.
func New(subscribe Subscribe, mark Mark) *Watching {
	w := &Watching{subscribe: subscribe, markAll: mark, wake: make(chan struct{}, 1), all: map[driver.Token]*watch{}}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// Watch is for driver.Watchers.OnFirstWatch.
func (w *Watching) Watch(name string, f func()) (stop func()) {
	x := &watch{token: driver.NewToken(), name: name, notify: f, ok: true}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[x.token] = x
	if !w.runs && w.life.Err() == nil {
		w.runs = true
		w.loops.Go(w.run)
	}
	w.wakeLoop()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, x.token) // the mark ends by itself
		w.wakeLoop()
	}
}

func (w *Watching) wakeLoop() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Notify notifies the watch with that token that its name has changed.
func (w *Watching) Notify(token driver.Token) {
	w.mu.Lock()
	x := w.all[token]
	w.mu.Unlock()
	if x != nil {
		x.notify()
	}
}

// MissesChanges reports whether there is a watched name whose changes are not reported.
func (w *Watching) MissesChanges() bool { return w.unreported.Load() }

// Close ends the goroutine, and waits for its end.
func (w *Watching) Close() {
	w.end()
	w.loops.Wait()
}

// run keeps all names marked as long as there are any.
func (w *Watching) run() {
	stop := w.subscribe(w.setState)
	defer stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for fails, seen := 0, 0; ; {
		names, up, changes := w.watches()
		if names == nil {
			return
		}
		next := time.Hour // until signals arrive
		if up {
			if next = w.markDue(names); next > 0 {
				fails = 0
			} else {
				next = backoff.JitterUp(backoff.Doubled(markRetryPause, fails, markRetryMaxPause))
				fails++
			}
		}
		// Before the first call of setState, changes are expected to be reported.
		unreported := !up && changes > 0 || slices.ContainsFunc(names, func(x *watch) bool { return !x.ok })
		if w.unreported.Swap(unreported) != unreported || changes != seen {
			seen = changes
			for _, x := range names {
				x.notify() // the watch reads the name and PushesChanges
			}
		}
		timer.Reset(next)
		select {
		case <-w.life.Done():
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

// watches are the names for run. If there are none, run ends.
func (w *Watching) watches() (all []*watch, up bool, changes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all = slices.Collect(maps.Values(w.all)); all == nil {
		w.runs, w.up, w.changes = false, false, 0
		w.unreported.Store(false)
	}
	return all, w.up, w.changes
}

// markDue marks the names whose marks have to be renewed, and returns when that is due
// for the next one; 0 if a name could not be marked.
func (w *Watching) markDue(all []*watch) (next time.Duration) {
	now := time.Now()
	due := slices.DeleteFunc(slices.Clone(all), func(x *watch) bool { return x.until.After(now) })
	if len(due) > 0 && w.markThose(due) != nil && (len(due) == 1 || !w.markEach(due)) {
		return 0
	}
	next = time.Hour
	for _, x := range all {
		next = min(next, x.until.Sub(now))
	}
	return max(next, time.Millisecond)
}

// markEach marks names one by one that could not be marked together, because one of them
// may be damaged. Damage is reported at once. The first timeout ends markEach, because
// the backend hangs then, and all watches must soon learn that changes are not reported.
func (w *Watching) markEach(due []*watch) (ok bool) {
	ok = true
	for one := range slices.Chunk(due, 1) {
		err := w.markThose(one)
		ok = ok && err == nil
		if w.life.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return ok
}

// markThose marks names, and notifies the watches whose mark was missing. After an error
// their changes are not reported. A timeout is always [context.DeadlineExceeded],
// whatever error the backend returned.
func (w *Watching) markThose(due []*watch) error {
	ctx, cancel := context.WithTimeout(w.life, markTimeout)
	defer cancel()
	tokens, names := make([]driver.Token, len(due)), make([]string, len(due))
	for i, x := range due {
		tokens[i], names[i] = x.token, x.name
	}
	until := time.Now().Add(backoff.JitterDown(Keep))
	known, ok, err := w.markAll(ctx, tokens, names)
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
