package swap

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// recordingStore is a Store that records its requests, and answers each after answerTime.
type recordingStore struct {
	Store
	answerTime time.Duration

	mu       sync.Mutex // protects the fields below
	sent     [][]string
	canceled int
}

func (r *recordingStore) Swap(ctx context.Context, swaps []Swap) ([]Swapped, error) {
	var names []string
	all := make([]Swapped, len(swaps))
	for i, s := range swaps {
		names, all[i] = append(names, s.Name), Swapped{Done: true, Version: s.Version + 1}
	}
	r.mu.Lock()
	r.sent = append(r.sent, names)
	r.mu.Unlock()
	select {
	case <-time.After(r.answerTime):
		return all, nil
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.canceled++
		return nil, ctx.Err()
	}
}

// startSwaps starts n swaps, one after the other. wait waits for them, and checks their
// results.
func startSwaps(t *testing.T, ctx context.Context, q *swapQueue, first, n int) (wait func()) {
	t.Helper()
	var all sync.WaitGroup
	for i := first; i < first+n; i++ {
		all.Go(func() {
			swapped, err := q.swap(ctx, Swap{Name: strconv.Itoa(i), Version: uint64(i)})
			if err == nil && swapped.Version != uint64(i)+1 {
				t.Errorf("swap %d got the version %d", i, swapped.Version)
			}
			if !errors.Is(err, ctx.Err()) {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	return all.Wait
}

func newTestQueue(answerTime time.Duration, maxFit int) (*swapQueue, *recordingStore) {
	r := &recordingStore{answerTime: answerTime}
	return &swapQueue{store: r, fit: func(all []Swap) int { return min(len(all), maxFit) }}, r
}

// requestsInFlight returns their number, once all goroutines are blocked.
func requestsInFlight(q *swapQueue) int {
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inFlight
}

func TestSwapsThatGatherShareTheNextRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, r := newTestQueue(time.Millisecond, 60)
		startSwaps(t, t.Context(), q, 0, 10)()
		if len(r.sent) != 3 || len(r.sent[2]) != 8 {
			t.Errorf("requests %v; want two swaps alone, and the others together", r.sent)
		}
		if n := requestsInFlight(q); n > 0 {
			t.Errorf("%d requests are under way", n)
		}
	})
}

// A swap that does not fit into a request does not wait for the answer to it.
func TestSwapsThatDoNotFitAreSentAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, r := newTestQueue(time.Millisecond, 3)
		began := time.Now()
		startSwaps(t, t.Context(), q, 0, 10)()
		if took := time.Since(began); took != 2*time.Millisecond {
			t.Errorf("the requests %v took %v; want two milliseconds", r.sent, took)
		}
	})
}

// If Fit returns less than 1, or more than the number of swaps, no swap is delayed.
func TestAWrongFitDelaysNoSwap(t *testing.T) {
	for _, fits := range []int{-1, 0, 100} {
		bubble.Test(t, func(t *testing.T) {
			r := &recordingStore{answerTime: time.Millisecond}
			q := &swapQueue{store: r, fit: func([]Swap) int { return fits }}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			startSwaps(t, ctx, q, 0, 10)()
			if n := requestsInFlight(q); n > 0 {
				t.Errorf("with a Fit of %d, %d requests are under way", fits, n)
			}
		})
	}
}

// Swaps do not wait for slow answers to earlier requests.
func TestSlowAnswersDoNotDelayOtherSwaps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, _ := newTestQueue(time.Second, 60)
		began := time.Now()
		startSwaps(t, t.Context(), q, 0, 10)()
		if took := time.Since(began); took > time.Second+gatherTime {
			t.Errorf("the swaps took %v; want the time of one request", took)
		}
	})
}

// A caller that gives up returns at once. If its swap was not sent yet, it is dropped.
// Otherwise the request goes on for its other callers, and ends when all have given up.
func TestACallerThatGivesUpDoesNotEndASharedRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, r := newTestQueue(time.Second, 60)
		staying, leaveAll := context.WithCancel(t.Context())
		defer leaveAll()
		wait := startSwaps(t, staying, q, 0, 2)
		leaving, cancel := context.WithCancel(t.Context())
		waitLeaving := startSwaps(t, leaving, q, 2, 1) // it is not sent yet
		cancel()
		waitLeaving()
		leaving, cancel = context.WithCancel(t.Context())
		waitLeaving = startSwaps(t, leaving, q, 3, 1)
		waitLast := startSwaps(t, staying, q, 4, 1)
		time.Sleep(2 * gatherTime)
		cancel()
		waitLeaving()
		if r.mu.Lock(); len(r.sent) != 3 || len(r.sent[2]) != 2 || r.canceled > 0 {
			t.Errorf("%v were sent, %d canceled; want the third without the name 2", r.sent, r.canceled)
		}
		r.mu.Unlock()
		leaveAll()
		wait()
		waitLast()
		if n := requestsInFlight(q); r.canceled != 3 || n != 0 {
			t.Errorf("%d were canceled, %d are under way; want all canceled", r.canceled, n)
		}
	})
}
