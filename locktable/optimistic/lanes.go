package optimistic

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Gatherer is a Store that can send the swaps of several goroutines in one request,
// which costs little more than one swap. Such a request goes on when one of its callers
// gives up, so a Gatherer is a Lingerer, too.
type Gatherer interface {
	Lingerer

	// Fit returns the number of these swaps, from the first on, that share a request.
	// Less than 1 counts as 1.
	Fit(swaps []Swap) int
}

// lanes put the swaps of several goroutines into one request. While few requests are
// under way, each swap is sent alone. Later swaps gather until one of those requests is
// answered, or until gatherTime after the last one was sent. Then they are sent together.
// A quick server needs only two lanes: swaps gather for one while it answers the other.
type lanes struct {
	store Store
	fit   func([]Swap) int

	mu       sync.Mutex    // protects all below, and the fields of each queuedSwap and batch
	gathered []*queuedSwap // not sent yet
	inFlight int           // requests under way
	lastSent time.Time     // when the last request was sent
	timer    *time.Timer
}

const (
	freeRequests = 2

	// maxRequests is the largest number of requests under way. A server that does not
	// answer blocks each of them until its callers have given up.
	maxRequests = 64

	// gatherTime is the time after the last request at which another one is sent, even if
	// none was answered. So no swap waits much longer for others.
	gatherTime = 2 * time.Millisecond
)

// A queuedSwap is a swap, and the goroutine that waits for it.
type queuedSwap struct {
	swap   Swap
	batch  *batch // nil until it is sent
	done   chan struct{}
	result Swapped
	err    error
}

// A batch is a request under way. It is cancelled when all its callers have given up.
type batch struct {
	queued  []*queuedSwap
	waiting int
	cancel  context.CancelFunc
}

// swap makes one swap, perhaps together with others.
func (l *lanes) swap(ctx context.Context, s Swap) (Swapped, error) {
	l.mu.Lock()
	if l.inFlight < freeRequests && len(l.gathered) == 0 {
		l.inFlight++
		l.lastSent = time.Now()
		l.mu.Unlock()
		return l.sendAlone(ctx, s)
	}
	r := &queuedSwap{swap: s, done: make(chan struct{})}
	l.gathered = append(l.gathered, r)
	l.startTimerLocked()
	l.mu.Unlock()
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		l.giveUp(r)
		return Swapped{}, ctx.Err()
	}
}

// sendAlone sends a swap on the goroutine of its caller, and then leaves its lane to the
// swaps that have gathered meanwhile.
func (l *lanes) sendAlone(ctx context.Context, s Swap) (Swapped, error) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.gathered) > 0 {
			go l.run()
		} else {
			l.inFlight--
		}
	}()
	all, err := l.store.Swap(ctx, []Swap{s})
	if err != nil {
		return Swapped{}, err
	}
	return all[0], nil
}

// run is the goroutine of a lane. It sends swaps that have gathered, until none is left.
func (l *lanes) run() {
	for {
		runtime.Gosched() // callers that were answered together send their next swaps together
		b, swaps, ctx := l.takeBatch()
		if b == nil {
			return
		}
		all, err := l.store.Swap(ctx, swaps)
		b.cancel()
		for i, r := range b.queued { // a caller that has given up does not read its result
			if r.err = err; err == nil {
				r.result = all[i]
			}
			close(r.done)
		}
	}
}

// takeBatch makes a batch of the gathered swaps, as many as fit into one request, and
// opens another lane for the rest. If no swap has gathered, it closes the lane.
func (l *lanes) takeBatch() (*batch, []Swap, context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.gathered) == 0 {
		l.inFlight--
		return nil, nil, nil
	}
	swaps := make([]Swap, len(l.gathered))
	for i, r := range l.gathered {
		swaps[i] = r.swap
	}
	n := min(max(l.fit(swaps), 1), len(swaps))
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{queued: l.gathered[:n:n], waiting: n, cancel: cancel}
	for _, r := range b.queued {
		r.batch = b
	}
	if l.gathered = l.gathered[n:]; len(l.gathered) == 0 {
		l.gathered = nil
	} else {
		l.openLaneLocked()
	}
	l.lastSent = time.Now()
	return b, swaps[:n], ctx
}

func (l *lanes) openLaneLocked() {
	if l.inFlight < maxRequests {
		l.inFlight++
		go l.run()
	}
}

// giveUp drops the swap of a caller that gives up, if it is not sent yet. When all
// callers of a batch have given up, it cancels the request.
func (l *lanes) giveUp(r *queuedSwap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := r.batch; b != nil {
		if b.waiting--; b.waiting == 0 {
			b.cancel()
		}
		return
	}
	for i, other := range l.gathered {
		if other == r {
			l.gathered = append(l.gathered[:i:i], l.gathered[i+1:]...)
			return
		}
	}
}

// startTimerLocked starts the timer for the first swap that gathers.
func (l *lanes) startTimerLocked() {
	if len(l.gathered) > 1 {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(gatherTime, l.openLaneIfSlow)
	} else {
		l.timer.Reset(gatherTime)
	}
}

// openLaneIfSlow opens one more lane if the others are slow.
func (l *lanes) openLaneIfSlow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.gathered) == 0 {
		return
	}
	if time.Since(l.lastSent) >= gatherTime {
		l.openLaneLocked()
	}
	l.timer.Reset(gatherTime)
}
