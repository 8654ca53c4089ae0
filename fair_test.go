package pawl_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// A process serves its own waiters for permits in the order of their coming, though some
// of them could be granted together.
func TestPermitsGoToThoseWhoWaitInTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = time.Millisecond
		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l := must(t)(c.Semaphore("x", 4).Acquire(background, 1))
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				time.Sleep(3 * time.Second)
				noError(t, l.Release(background))
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		if !slices.IsSorted(served) {
			t.Errorf("served in the order %v", served)
		}
	})
}

// visit is one Lock: whose it is, when it came, and when it was served.
type visit struct {
	process      int
	came, served time.Time
}

// crowd has goroutines of several processes lock a name, so many times each, and returns
// their visits in the order in which they were served.
func (w *world) crowd(t *testing.T, processes, goroutines, times int, hold time.Duration, o pawl.Options) (visits []visit) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	clients := make([]*pawl.Client, processes)
	for p := range clients {
		clients[p], _ = w.client(&o)
	}
	for range goroutines {
		for p, c := range clients {
			wg.Go(func() {
				for range times {
					v := visit{process: p, came: time.Now()}
					l := must(t)(c.Mutex("x").Lock(background))
					v.served = time.Now()
					mu.Lock()
					visits = append(visits, v)
					mu.Unlock()
					time.Sleep(hold)
					noError(t, l.Release(background))
				}
			})
			synctest.Wait()
			time.Sleep(time.Microsecond) // so that each comes at a time of its own
		}
	}
	wg.Wait()
	return visits
}

// unfair compares the order of service with the order of coming: early is the number of
// visits that were served while an earlier waiter of another process waited, row the
// longest row of such visits of one process.
func unfair(visits []visit) (early, row int) {
	run := 0
	for i, v := range visits {
		passed := slices.ContainsFunc(visits[i+1:], func(x visit) bool {
			return x.process != v.process && x.came.Before(v.came)
		})
		switch {
		case !passed:
			run = 0
			continue
		case i > 0 && visits[i-1].process == v.process:
			run++
		default:
			run = 1
		}
		early, row = early+1, max(row, run)
	}
	return early, row
}

// Ten processes of ten goroutines each come by turns, and come back as soon as they have
// released. A process whose waiters come later is not served again and again.
func TestAProcessServesInItsTurnOnlyThoseWhoWaitedWithIt(t *testing.T) {
	const processes, goroutines = 10, 10
	for _, hold := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		for handoff, most := range map[time.Duration]int{-1: 1, 0: goroutines} {
			inWorld(t, func(t *testing.T, w *world) {
				visits := w.crowd(t, processes, goroutines, 20, hold, pawl.Options{HandoffWindow: handoff})
				early, row := unfair(visits)
				if row > most {
					t.Errorf("hold %v, handoff %v: %d of one process in a row while another waited, want %d at most", hold, handoff, row, most)
				}
				if handoff < 0 && early > processes*goroutines {
					t.Errorf("hold %v: %d of %d were served before others who had come before", hold, early, len(visits))
				}
			})
		}
	}
}

// A waiter that comes during the turn of its process is served in the next one.
func TestWhoComesInATurnWaitsForTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.two()
		l := line{t: t}
		held := must(t)(b.Mutex("x").Lock(background))
		for range 3 {
			l.join("a", a)
		}
		l.join("b", b)
		time.Sleep(2 * time.Second) // their places are kept, and the head knows how many are behind it
		noError(t, held.Release(background))
		l.join("A", a)
		if l.wg.Wait(); l.past != "aaabA" {
			t.Errorf("order %s", l.past)
		}
	})
}
