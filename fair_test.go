package pawl_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// A process serves its own waiters for permits in the order in which they came, although
// several of them could be granted together.
func TestPermitsAreGrantedInTheOrderOfTheQueue(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, c *pawl.Client, net *network) {
		net.latency = time.Millisecond
		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l := must(c.Semaphore("x", 4).Acquire(background, 1))(t)
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

// visit is one call of Lock.
type visit struct {
	process         int
	arrived, served time.Time
}

// runVisits makes goroutines of several processes lock a name. times is the number of
// visits of each. runVisits returns them in the order in which they were served.
func (w *world) runVisits(t *testing.T, processes, goroutines, times int, hold time.Duration, o pawl.Options) (visits []visit) {
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
					v := visit{process: p, arrived: time.Now()}
					l := must(c.Mutex("x").Lock(background))(t)
					v.served = time.Now()
					mu.Lock()
					visits = append(visits, v)
					mu.Unlock()
					time.Sleep(hold)
					noError(t, l.Release(background))
				}
			})
			synctest.Wait()
			time.Sleep(time.Microsecond) // so that no two arrive at the same time
		}
	}
	wg.Wait()
	return visits
}

// countEarly compares the order of service with the order of arrival. early is the number
// of visits that were served while an earlier waiter of another process waited. most is
// the greatest number of such visits of one process in a row.
func countEarly(visits []visit) (early, most int) {
	inARow := 0
	for i, v := range visits {
		isEarly := slices.ContainsFunc(visits[i+1:], func(x visit) bool {
			return x.process != v.process && x.arrived.Before(v.arrived)
		})
		switch {
		case !isEarly:
			inARow = 0
			continue
		case i > 0 && visits[i-1].process == v.process:
			inARow++
		default:
			inARow = 1
		}
		early, most = early+1, max(most, inARow)
	}
	return early, most
}

// The goroutines of ten processes lock one name by turns, and lock it again as soon as
// they have released it. After its turn, a process waits behind the other processes.
func TestAProcessServesInItsTurnOnlyEarlierWaiters(t *testing.T) {
	const processes, goroutines = 10, 10
	for _, hold := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		for handoff, allowed := range map[time.Duration]int{-1: 1, 0: goroutines} {
			inWorld(t, func(t *testing.T, w *world) {
				visits := w.runVisits(t, processes, goroutines, 20, hold, pawl.Options{HandoffWindow: handoff})
				early, most := countEarly(visits)
				if most > allowed {
					t.Errorf("hold %v, handoff %v: %d visits of one process in a row while another process waited, want %d at most", hold, handoff, most, allowed)
				}
				if handoff < 0 && early > processes*goroutines {
					t.Errorf("hold %v: %d of %d were served before earlier waiters", hold, early, len(visits))
				}
			})
		}
	}
}
