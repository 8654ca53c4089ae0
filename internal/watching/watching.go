// Package watching has the names that a client watches marked as such, for as long as it
// watches them: where signals come in by themselves, whoever changes a marked name sends
// one to all that have marked it.
package watching

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Ears has signals come in until stop is called. It calls f each time that they begin to,
// and with false each time that they no longer do. It does not block.
type Ears func(f func(hears bool)) (stop func())

// Mark marks names as watched, each with its token, for at least Keep. Its answers say of
// each name whether it was marked until then, and whether it is now.
type Mark func(ctx context.Context, tokens []driver.Token, names []string) (known, ok []bool, err error)

// A mark ends by itself, and is renewed until then. Who finds its own missing (the name
// was deleted, or the clock has jumped) looks.
const (
	Keep      = 20 * time.Second // after this, or a bit sooner, marks are renewed
	markIn    = 5 * time.Second  // how long that may take
	markAgain = 100 * time.Millisecond
	markSlow  = time.Minute // the longest pause after failures: some may only read
)

// Watching is what a driver has of the names that are watched. One goroutine marks them
// all.
type Watching struct {
	ears    Ears
	markAll Mark

	life  context.Context
	end   context.CancelFunc
	loops sync.WaitGroup
	wake  chan struct{} // holds one
	deaf  atomic.Bool   // changes are not told of each name that is watched

	mu    sync.Mutex // protects what follows
	all   map[driver.Token]*watch
	runs  bool
	hears bool
	turns int // how often it began to hear, or no longer did
}

type watch struct {
	token driver.Token
	name  string
	tell  func()
	until time.Time // it is marked well until then
	ok    bool      // it was, when that was last tried
}

// New watches nothing yet.
func New(ears Ears, mark Mark) *Watching {
	w := &Watching{ears: ears, markAll: mark, wake: make(chan struct{}, 1), all: map[driver.Token]*watch{}}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// Follow is what driver.Watchers.Follow takes.
func (w *Watching) Follow(name string, f func()) (stop func()) {
	x := &watch{token: driver.NewToken(), name: name, tell: f, ok: true}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[x.token] = x
	if !w.runs && w.life.Err() == nil {
		w.runs = true
		w.loops.Go(w.run)
	}
	w.rouse()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, x.token) // the mark ends by itself
		w.rouse()
	}
}

func (w *Watching) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Heard tells whoever watches with that token that its name has changed.
func (w *Watching) Heard(token driver.Token) {
	w.mu.Lock()
	x := w.all[token]
	w.mu.Unlock()
	if x != nil {
		x.tell()
	}
}

// Deaf reports whether there is a name of which changes are not told.
func (w *Watching) Deaf() bool { return w.deaf.Load() }

// Close ends it, and waits for that.
func (w *Watching) Close() {
	w.end()
	w.loops.Wait()
}

// run has all names marked as long as there are any.
func (w *Watching) run() {
	stop := w.ears(w.turn)
	defer stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for fails, seen := 0, 0; ; {
		names, hears, turns := w.now()
		if names == nil {
			return
		}
		next := time.Hour // until it hears
		if hears {
			if next = w.mark(names); next > 0 {
				fails = 0
			} else {
				next = backoff.Late(backoff.Doubled(markAgain, fails, markSlow))
				fails++
			}
		}
		if deaf := w.isDeaf(); w.deaf.Swap(deaf) != deaf || turns != seen {
			seen = turns
			for _, x := range names {
				x.tell() // and goes by what is true from now on
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

// turn is called when it begins to hear, or no longer does.
func (w *Watching) turn(hears bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns > 0 && w.hears == hears {
		return
	}
	w.hears = hears
	w.turns++
	w.rouse()
}

// now is what is to be done. If that is nothing, run ends.
func (w *Watching) now() (all []*watch, hears bool, turns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.all {
		all = append(all, x)
	}
	if len(all) == 0 {
		w.runs, w.hears, w.turns = false, false, 0
		w.deaf.Store(false)
	}
	return all, w.hears, w.turns
}

// isDeaf reports whether there is a name of which changes are not told. Before it was
// first tried, they are expected to be.
func (w *Watching) isDeaf() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	deaf := !w.hears && w.turns > 0
	for _, x := range w.all {
		deaf = deaf || !x.ok
	}
	return deaf
}

// mark marks those names whose turn it is, and returns when it is that of the next; 0 if
// one could not be marked.
func (w *Watching) mark(all []*watch) (next time.Duration) {
	now := time.Now()
	var due []*watch
	for _, x := range all {
		if !x.until.After(now) {
			due = append(due, x)
		}
	}
	var err error
	if len(due) > 0 {
		err = w.markThose(due)
	}
	if err != nil && len(due) > 1 {
		err = w.markEach(due)
	}
	if err != nil {
		return 0
	}
	next = time.Hour
	for _, x := range all {
		next = min(next, x.until.Sub(now))
	}
	return max(next, time.Millisecond)
}

// markEach marks those that could not be marked together, for one of them may be damaged.
// Damage is found at once. So whatever runs out of time ends it: then the backend hangs,
// and they are deaf, and have to hear of that before each has waited for itself.
func (w *Watching) markEach(due []*watch) (failed error) {
	for _, x := range due {
		if err := w.markThose([]*watch{x}); err != nil {
			failed = err
		}
		if w.life.Err() != nil || errors.Is(failed, context.DeadlineExceeded) {
			break
		}
	}
	return failed
}

// markThose marks some, and tells those that were not marked until then. If it could not,
// they are deaf. Whatever the backend calls it, what ran out of time is
// [context.DeadlineExceeded].
func (w *Watching) markThose(due []*watch) error {
	ctx, cancel := context.WithTimeout(w.life, markIn)
	defer cancel()
	tokens, names := make([]driver.Token, len(due)), make([]string, len(due))
	for i, x := range due {
		tokens[i], names[i] = x.token, x.name
	}
	until := time.Now().Add(backoff.Early(Keep))
	known, ok, err := w.markAll(ctx, tokens, names)
	for i, x := range due {
		w.mu.Lock()
		x.ok = err == nil && ok[i]
		w.mu.Unlock()
		if x.until = until; err != nil {
			x.until = time.Time{}
		}
		if err == nil && !known[i] {
			x.tell() // something may have changed unheard
		}
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
