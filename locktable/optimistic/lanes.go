package optimistic

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Gatherer is a Store one of whose requests can take the swaps of several goroutines,
// which costs little more than that of one. Such a request goes on when one of its
// callers gives up, so it is a Lingerer, too.
type Gatherer interface {
	Lingerer

	// Fit is how many of these swaps, from the first on, share a request: one at the
	// least, whatever it says.
	Fit(swaps []Swap) int
}

// lanes make one request of the swaps that several goroutines come with at the same time.
// Whoever comes while few requests are under way sends its own. Whoever comes later is
// sent with all that have gathered until one of those is answered, or they are slow. Two
// of them, because one gathers while the other is answered.
type lanes struct {
	store Store
	fit   func([]Swap) int

	mu    sync.Mutex // protects all below, and the fields of each rider and batch
	next  []*rider   // that wait
	under int        // requests under way
	last  time.Time  // when the last of them was sent
	timer *time.Timer
}

const (
	fewLanes = 2

	// mostLanes is how many requests are under way at once. A server that does not answer
	// keeps each until its callers have given up.
	mostLanes = 64

	// slowLane is how long nobody answers until one more request is sent: as long a step
	// waits for company at the most.
	slowLane = 2 * time.Millisecond
)

// A rider is a swap, and the goroutine that waits for it.
type rider struct {
	swap  Swap
	batch *batch // nil until it is sent
	done  chan struct{}
	is    Swapped
	err   error
}

// A batch is a request under way. It is given up when all have who wait for it.
type batch struct {
	riders []*rider
	wait   int
	cancel context.CancelFunc
}

// swap makes one swap, maybe together with others.
func (l *lanes) swap(ctx context.Context, s Swap) (Swapped, error) {
	l.mu.Lock()
	if l.under < fewLanes && len(l.next) == 0 {
		l.under++
		l.last = time.Now()
		l.mu.Unlock()
		return l.alone(ctx, s)
	}
	r := &rider{swap: s, done: make(chan struct{})}
	l.next = append(l.next, r)
	l.watchLocked()
	l.mu.Unlock()
	select {
	case <-r.done:
		return r.is, r.err
	case <-ctx.Done():
		l.quit(r)
		return Swapped{}, ctx.Err()
	}
}

// alone sends a swap by the goroutine that came with it, and leaves its lane to those
// that have gathered meanwhile.
func (l *lanes) alone(ctx context.Context, s Swap) (Swapped, error) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.next) > 0 {
			go l.run()
		} else {
			l.under--
		}
	}()
	all, err := l.store.Swap(ctx, []Swap{s})
	if err != nil {
		return Swapped{}, err
	}
	return all[0], nil
}

// run is a lane: it sends what has gathered, again and again, until there is nothing.
func (l *lanes) run() {
	for {
		runtime.Gosched() // those that were answered together come back together
		b, swaps, ctx := l.take()
		if b == nil {
			return
		}
		all, err := l.store.Swap(ctx, swaps)
		b.cancel()
		for i, r := range b.riders { // who has given up does not look
			if r.err = err; err == nil {
				r.is = all[i]
			}
			close(r.done)
		}
	}
}

// take takes what has gathered, as much as goes into one request. What is left goes into
// others. If there is nothing the lane is closed.
func (l *lanes) take() (*batch, []Swap, context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.next) == 0 {
		l.under--
		return nil, nil, nil
	}
	swaps := make([]Swap, len(l.next))
	for i, r := range l.next {
		swaps[i] = r.swap
	}
	n := min(max(l.fit(swaps), 1), len(swaps))
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{riders: l.next[:n:n], wait: n, cancel: cancel}
	for _, r := range b.riders {
		r.batch = b
	}
	if l.next = l.next[n:]; len(l.next) == 0 {
		l.next = nil
	} else {
		l.openLocked()
	}
	l.last = time.Now()
	return b, swaps[:n], ctx
}

func (l *lanes) openLocked() {
	if l.under < mostLanes {
		l.under++
		go l.run()
	}
}

// quit is for a rider that gives up. If it has not been sent it is not.
func (l *lanes) quit(r *rider) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := r.batch; b != nil {
		if b.wait--; b.wait == 0 {
			b.cancel()
		}
		return
	}
	for i, other := range l.next {
		if other == r {
			l.next = append(l.next[:i:i], l.next[i+1:]...)
			return
		}
	}
}

// watchLocked has the timer look after those that wait.
func (l *lanes) watchLocked() {
	if len(l.next) > 1 {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(slowLane, l.hurry)
	} else {
		l.timer.Reset(slowLane)
	}
}

// hurry opens one more lane if the others are slow.
func (l *lanes) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.next) == 0 {
		return
	}
	if time.Since(l.last) >= slowLane {
		l.openLocked()
	}
	l.timer.Reset(slowLane)
}
