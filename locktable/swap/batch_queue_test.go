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

// requests is a Store that notes what it is sent, and answers after a while.
type requests struct {
	Store
	takes time.Duration

	mu       sync.Mutex // protects all below
	sent     [][]string
	canceled int
}

func (r *requests) Swap(ctx context.Context, swaps []Swap) ([]Swapped, error) {
	var names []string
	all := make([]Swapped, len(swaps))
	for i, s := range swaps {
		names, all[i] = append(names, s.Name), Swapped{Done: true, Version: s.Version + 1}
	}
	r.mu.Lock()
	r.sent = append(r.sent, names)
	r.mu.Unlock()
	select {
	case <-time.After(r.takes):
		return all, nil
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.canceled++
		return nil, ctx.Err()
	}
}

// come makes so many swaps, one after the other has begun, and returns what wants all to
// have gone well.
func come(t *testing.T, ctx context.Context, q *swapQueue, first, n int) (over func()) {
	t.Helper()
	var all sync.WaitGroup
	for i := first; i < first+n; i++ {
		all.Go(func() {
			is, err := q.swap(ctx, Swap{Name: strconv.Itoa(i), Version: uint64(i)})
			if err == nil && is.Version != uint64(i)+1 {
				t.Errorf("%d got the answer %d", i, is.Version)
			}
			if !errors.Is(err, ctx.Err()) {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	return all.Wait
}

func gatherer(takes time.Duration, most int) (*swapQueue, *requests) {
	r := &requests{takes: takes}
	return &swapQueue{store: r, fit: func(all []Swap) int { return min(len(all), most) }}, r
}

// underWay returns the number of requests under way, once all goroutines are blocked.
func underWay(q *swapQueue) int {
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inFlight
}

func TestThoseThatComeMeanwhileShareTheNextRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, r := gatherer(time.Millisecond, 60)
		come(t, t.Context(), q, 0, 10)()
		if len(r.sent) != 3 || len(r.sent[2]) != 8 {
			t.Errorf("%v; want two alone, and the others together", r.sent)
		}
		if n := underWay(q); n > 0 {
			t.Errorf("%d requests are under way", n)
		}
	})
}

// A swap that does not fit into one request does not wait for its answer.
func TestWhatDoesNotFitGoesAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, r := gatherer(time.Millisecond, 3)
		began := time.Now()
		come(t, t.Context(), q, 0, 10)()
		if took := time.Since(began); took != 2*time.Millisecond {
			t.Errorf("%v took %v; want two milliseconds", r.sent, took)
		}
	})
}

// A store that says that no swap fits, or more than there are, delays no swap.
func TestAStoreThatMiscountsWhatFitsGetsOneAtLeast(t *testing.T) {
	for _, fits := range []int{-1, 0, 100} {
		bubble.Test(t, func(t *testing.T) {
			r := &requests{takes: time.Millisecond}
			q := &swapQueue{store: r, fit: func([]Swap) int { return fits }}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			come(t, ctx, q, 0, 10)()
			if n := underWay(q); n > 0 {
				t.Errorf("with a Fit of %d, %d requests are under way", fits, n)
			}
		})
	}
}

// If answers take long, swaps do not wait for them to be sent.
func TestSlowAnswersHoldNobodyUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, _ := gatherer(time.Second, 60)
		began := time.Now()
		come(t, t.Context(), q, 0, 10)()
		if took := time.Since(began); took > time.Second+gatherTime {
			t.Errorf("it took %v; want the time of a request", took)
		}
	})
}

// A caller that gives up returns at once. If its swap was not sent, it is not sent any
// more. If it was, the request goes on for the others, and ends with the last of them.
func TestOneOfThoseThatShareGivesUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		q, r := gatherer(time.Second, 60)
		stay, leave := context.WithCancel(t.Context())
		defer leave()
		over := come(t, stay, q, 0, 2)
		hasty, cancel := context.WithCancel(t.Context())
		hurried := come(t, hasty, q, 2, 1) // it waits to be sent
		cancel()
		hurried()
		hasty, cancel = context.WithCancel(t.Context())
		hurried = come(t, hasty, q, 3, 1)
		last := come(t, stay, q, 4, 1)
		time.Sleep(2 * gatherTime)
		cancel()
		hurried()
		if r.mu.Lock(); len(r.sent) != 3 || len(r.sent[2]) != 2 || r.canceled > 0 {
			t.Errorf("%v were sent, %d given up; want the third without the name 2", r.sent, r.canceled)
		}
		r.mu.Unlock()
		leave()
		over()
		last()
		if n := underWay(q); r.canceled != 3 || n != 0 {
			t.Errorf("%d were given up, %d are under way; want all given up", r.canceled, n)
		}
	})
}
