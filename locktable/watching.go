package locktable

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

// Hearing is a table whose signals come in by themselves. The driver over it needs no
// more to tell of changes: whoever watches a name marks its entry, see [Mark].
type Hearing interface {
	// Hear has signals come in until stop is called, also while this client neither holds
	// nor waits. It calls f each time that they begin to, for what was sent before may be
	// lost, and with false each time that they no longer do. It does not block.
	Hear(f func(hears bool)) (stop func())
}

// A mark ends by itself, and is renewed until then. Who finds its own missing (the name
// was deleted, or the clock has jumped) looks.
const (
	markFor   = time.Minute
	markKeep  = 20 * time.Second // after this, or a bit sooner, marks are renewed
	markIn    = 5 * time.Second  // how long that may take
	markAgain = 100 * time.Millisecond
	markSlow  = time.Minute // the longest pause after failures: some may only read
)

// watching is what a driver has of the names that are watched, over a table that hears.
// One goroutine marks them all.
type watching struct {
	table Table
	ears  Hearing // the same
	inbox string

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

// A watch is a name that is watched.
type watch struct {
	token driver.Token
	name  string
	tell  func()
	until time.Time // it is marked well until then
	ok    bool      // it was, when that was last tried
}

func newWatching(t Table, ears Hearing, inbox string) *watching {
	w := &watching{table: t, ears: ears, inbox: inbox, wake: make(chan struct{}, 1), all: map[driver.Token]*watch{}}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// follow is what driver.Watchers wants of it.
func (w *watching) follow(name string, f func()) (stop func()) {
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

func (w *watching) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// heard hands a signal to whom it is for.
func (w *watching) heard(s driver.Signal) {
	w.mu.Lock()
	x := w.all[s.Token]
	w.mu.Unlock()
	if x != nil {
		x.tell()
	}
}

func (w *watching) close() {
	w.end()
	w.loops.Wait()
}

// run has all names marked as long as there are any.
func (w *watching) run() {
	stop := w.ears.Hear(w.turn)
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
func (w *watching) turn(hears bool) {
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
func (w *watching) now() (all []*watch, hears bool, turns int) {
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
func (w *watching) isDeaf() bool {
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
func (w *watching) mark(all []*watch) (next time.Duration) {
	now := time.Now()
	var due []*watch
	for _, x := range all {
		if !x.until.After(now) {
			due = append(due, x)
		}
	}
	failed := false
	if len(due) > 0 && !w.markThose(due) { // one of them may be damaged
		for _, x := range due {
			if w.life.Err() == nil && !w.markThose([]*watch{x}) {
				failed = true
			}
		}
	}
	next = time.Hour
	for _, x := range all {
		next = min(next, x.until.Sub(now))
	}
	if failed {
		return 0
	}
	return max(next, time.Millisecond)
}

// markThose marks some, and tells those that were not marked until then. It reports
// whether it could.
func (w *watching) markThose(due []*watch) bool {
	ctx, cancel := context.WithTimeout(w.life, markIn)
	defer cancel()
	steps := make([]Step, len(due))
	for i, x := range due {
		steps[i].Name = x.name
	}
	known, ok := make([]bool, len(due)), make([]bool, len(due))
	until := time.Now().Add(backoff.Early(markKeep))
	err := w.table.Update(ctx, steps, func(i int, e *Entry, now Instant) {
		known[i], ok[i] = e.Mark(now, Mark{Token: due[i].token, Inbox: w.inbox}, markFor)
	})
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
	return err == nil
}
