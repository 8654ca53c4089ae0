package swap

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// maxBatchSteps is the number of names whose steps are computed before they are swapped.
// A client computes some hundred steps within a window, even on a busy machine; beyond
// stepsPerWindow, each step makes the window wider by windowPerStep. The table retries
// the failed steps together once, and again while each try halves their number. If some
// of the remaining steps are late, it retries the remaining steps in splitFactor parts.
// Otherwise it runs them one by one.
const (
	maxBatchSteps  = 1024
	stepsPerWindow = 500
	windowPerStep  = 100 * time.Microsecond
	splitFactor    = 4
)

// lockTimeout is the time for which the steps of a batch wait for names that other steps
// of this client have locked. Those steps may wait for a row or for the server, and the
// answers of the whole batch would wait with them.
const lockTimeout = time.Second

// errNameBusy is the error of a step of a batch that gave up waiting for its name.
var errNameBusy = errors.New("an earlier request of this client for the name has no answer yet")

// A group has the indexes of the steps on one name, in order. These steps share a swap.
type group []int

// groupsOf returns the groups of some steps.
func groupsOf(steps []locktable.Step) (groups []group) {
	groupOf := make(map[string]int, len(steps))
	for i, s := range steps {
		k, known := groupOf[s.Name]
		if !known {
			k = len(groups)
			groupOf[s.Name], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	return groups
}

// runBatch runs several steps with few requests. It adds to failed the steps whose swap
// has an error of its own.
func (t *Table) runBatch(ctx context.Context, steps []locktable.Step, groups []group, f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error) error {
	remaining, late, err := t.swapTogether(ctx, steps, groups, f, failed)
	for before := 2 * len(groups); err == nil && len(remaining) > 1 && 2*len(remaining) <= before; {
		before = len(remaining) // the next try fails again for names that other clients change
		remaining, late, err = t.swapTogether(ctx, steps, remaining, f, failed)
	}
	if err != nil {
		return err
	}
	if late && len(remaining) > splitFactor {
		for part := range slices.Chunk(remaining, len(remaining)/splitFactor) {
			if err := t.runBatch(ctx, steps, part, f, failed); err != nil {
				return err
			}
		}
		return nil
	}
	busy, err := t.oneByOne(ctx, 0, steps, remaining, f, failed)
	if err == nil && len(busy) > 0 {
		busy, err = t.oneByOne(ctx, lockTimeout, steps, busy, f, failed)
	}
	for _, g := range busy {
		for _, i := range g {
			failed[i] = errNameBusy
		}
	}
	return err
}

// oneByOne runs the steps of some names, one after the other. busy has the steps whose
// name another step of this client kept locked until lockWait had passed.
func (t *Table) oneByOne(
	ctx context.Context, lockWait time.Duration, steps []locktable.Step, groups []group,
	f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error,
) (busy []group, err error) {
	lockCtx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for _, g := range groups {
		for k, i := range g {
			refused, err := t.step(ctx, lockCtx, steps[i], func(e *locktable.Entry, now locktable.Instant) { f(i, e, now) })
			if err != nil {
				return nil, err
			}
			if refused == nil {
				continue
			}
			if errors.Is(refused, errNameBusy) {
				busy = append(busy, g[k:])
				break
			}
			for _, i := range g[k:] {
				failed[i] = refused
			}
			break
		}
	}
	return busy, nil
}

// swapTogether runs the steps of several names with one request. remaining has the groups
// whose swap failed, or that must run alone. late means that some of them missed their
// window. swapTogether adds to failed the steps whose swap has an error of its own.
func (t *Table) swapTogether(ctx context.Context, steps []locktable.Step, groups []group, f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error) (remaining []group, late bool, err error) {
	n, names := 0, make([]string, len(groups))
	for k, g := range groups {
		n, names[k] = n+len(g), steps[g[0]].Name
	}
	seen, err := t.lastKnownAll(ctx, names, false)
	if err != nil {
		return nil, false, err
	}
	extraWidth := time.Duration(max(0, n-stepsPerWindow)) * windowPerStep
	leave, err := t.enterSwap(ctx)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	var swaps []Swap
	var taken []group
	for k, g := range groups {
		hasEnd := slices.ContainsFunc(g, func(i int) bool { return steps[i].HasEnd })
		c, err := t.newComputation(ctx, names[k], seen[names[k]], hasEnd, extraWidth)
		if err != nil {
			return nil, false, err
		}
		for _, i := range g {
			c.run(steps[i], t.delayed, func(e *locktable.Entry, now locktable.Instant) { f(i, e, now) })
		}
		if c.entry.Changed {
			swaps, taken = append(swaps, t.swapOf(c)), append(taken, g)
		} else {
			remaining = append(remaining, g)
		}
	}
	if len(swaps) == 0 {
		return remaining, false, nil
	}
	swapped, err := t.store.Swap(ctx, swaps)
	if err != nil {
		for k := range swaps {
			t.cache.drop(swaps[k].Name) // the swaps may have taken effect in spite of the error
		}
		return remaining, false, err
	}
	for k := range swaps {
		switch t.applyResult(swaps[k], swapped[k]); {
		case swapped[k].Done:
		case swapped[k].Err != nil:
			for _, i := range taken[k] {
				failed[i] = swapped[k].Err
			}
		default:
			remaining, late = append(remaining, taken[k]), late || swapped[k].OutsideWindow
		}
	}
	return remaining, late, nil
}

// lastKnownAll returns the last known values of several names. Values may be outdated
// even if lastKnownAll loads them, see [Store.Load]. So a step that changes nothing loads
// its value again. With fresh, lastKnownAll loads all values.
func (t *Table) lastKnownAll(ctx context.Context, names []string, fresh bool) (map[string]Stored, error) {
	seen := make(map[string]Stored, len(names))
	var unknown []string
	for _, name := range names {
		stored, ok := t.cache.get(name)
		if seen[name] = stored; !ok || fresh {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return seen, nil
	}
	all, err := t.store.Load(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for k, name := range unknown {
		t.cache.put(name, all[k])
		seen[name] = all[k]
	}
	return seen, nil
}

// A swapQueue puts the swaps of several goroutines into one request. While few requests
// are under way, each swap is sent alone. Later swaps gather until one of those requests
// is answered, or until gatherTime after the last one was sent. Then a goroutine, the
// sender, sends them together. Two senders are enough for a quick server: swaps gather
// for one sender while the server answers the other.
type swapQueue struct {
	store Store
	fit   func([]Swap) int

	mu       sync.Mutex    // protects the fields below, queuedSwap.batch and batch.waiting
	gathered []*queuedSwap // not sent yet
	inFlight int           // requests under way
	lastSent time.Time     // when the last request was sent
	timer    *time.Timer
}

const (
	requestsBeforeGathering = 2 // while fewer are under way, a swap is sent alone

	// maxRequests is the largest number of requests under way. A server that does not
	// answer blocks each of them until its callers have given up.
	maxRequests = 64

	// gatherTime is the time after which the next request is sent, even if none was
	// answered. So a swap waits hardly longer than that for others.
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

// swap makes one swap, maybe in a request with others.
func (q *swapQueue) swap(ctx context.Context, s Swap) (Swapped, error) {
	q.mu.Lock()
	if q.inFlight < requestsBeforeGathering && len(q.gathered) == 0 {
		q.inFlight++
		q.lastSent = time.Now()
		q.mu.Unlock()
		return q.sendAlone(ctx, s)
	}
	queued := &queuedSwap{swap: s, done: make(chan struct{})}
	q.gathered = append(q.gathered, queued)
	switch {
	case len(q.gathered) > 1: // the timer runs
	case q.timer == nil:
		q.timer = time.AfterFunc(gatherTime, q.startSenderIfSlow)
	default:
		q.timer.Reset(gatherTime)
	}
	q.mu.Unlock()
	select {
	case <-queued.done:
		return queued.result, queued.err
	case <-ctx.Done():
		q.giveUp(queued)
		return Swapped{}, ctx.Err()
	}
}

// sendAlone sends a swap on the goroutine of its caller, and then starts a sender if
// swaps have gathered meanwhile.
func (q *swapQueue) sendAlone(ctx context.Context, s Swap) (Swapped, error) {
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.gathered) > 0 {
			go q.sendLoop()
		} else {
			q.inFlight--
		}
	}()
	all, err := q.store.Swap(ctx, []Swap{s})
	if err != nil {
		return Swapped{}, err
	}
	return all[0], nil
}

// sendLoop is the goroutine of a sender. It sends swaps that have gathered, until none is
// left.
func (q *swapQueue) sendLoop() {
	for {
		runtime.Gosched() // callers that were answered together send their next swaps together
		b, swaps, ctx := q.takeBatch()
		if b == nil {
			return
		}
		all, err := q.store.Swap(ctx, swaps)
		b.cancel()
		for i, s := range b.queued { // a caller that has given up does not read its result
			if s.err = err; err == nil {
				s.result = all[i]
			}
			close(s.done)
		}
	}
}

// takeBatch makes a batch of the gathered swaps, as many as fit into one request, and
// starts another sender for the rest. If no swap has gathered, the sender ends.
func (q *swapQueue) takeBatch() (*batch, []Swap, context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.gathered) == 0 {
		q.inFlight--
		return nil, nil, nil
	}
	swaps := make([]Swap, len(q.gathered))
	for i, s := range q.gathered {
		swaps[i] = s.swap
	}
	n := min(max(q.fit(swaps), 1), len(swaps))
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{queued: q.gathered[:n:n], waiting: n, cancel: cancel}
	for _, s := range b.queued {
		s.batch = b
	}
	if q.gathered = q.gathered[n:]; len(q.gathered) == 0 {
		q.gathered = nil
	} else {
		q.startSenderLocked()
	}
	q.lastSent = time.Now()
	return b, swaps[:n], ctx
}

func (q *swapQueue) startSenderLocked() {
	if q.inFlight < maxRequests {
		q.inFlight++
		go q.sendLoop()
	}
}

// giveUp drops the swap of a caller that gives up, if it is not sent yet. When all
// callers of a batch have given up, it cancels the request.
func (q *swapQueue) giveUp(s *queuedSwap) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.batch == nil {
		q.gathered = slices.DeleteFunc(q.gathered, func(other *queuedSwap) bool { return other == s })
	} else if s.batch.waiting--; s.batch.waiting == 0 {
		s.batch.cancel()
	}
}

// startSenderIfSlow starts one more sender if no request was sent for gatherTime.
func (q *swapQueue) startSenderIfSlow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.gathered) == 0 {
		return
	}
	if time.Since(q.lastSent) >= gatherTime {
		q.startSenderLocked()
	}
	q.timer.Reset(gatherTime)
}
