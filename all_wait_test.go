package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// inBothModes runs a test with a backend that grants several names in one step, and with
// one that does not.
func inBothModes(t *testing.T, f func(t *testing.T, w *world, client func() *pawl.Client)) {
	t.Helper()
	for _, oneByOne := range []bool{false, true} {
		runInWorld(t, fmt.Sprint("one by one ", oneByOne), func(t *testing.T, w *world) {
			f(t, w, func() *pawl.Client {
				c, net := w.client(nil)
				net.oneByOne = oneByOne
				return c
			})
		})
	}
}

// exportLocks returns the locks of an export: the mutex of its tenant, and a permit.
func exportLocks(c *pawl.Client, tenant string) *pawl.Group {
	return pawl.All(c.Semaphore("exports", 4).Permits(1), c.Mutex("tenant:"+tenant))
}

func TestAllHoldsNothingWhileItWaits(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		var all sync.WaitGroup
		began := time.Now()
		for range 4 {
			all.Go(func() {
				noError(t, exportLocks(client(), "a").Do(background, func(context.Context) error {
					time.Sleep(time.Minute)
					return nil
				}))
			})
		}
		time.Sleep(time.Second)
		wantEqual(t, "permits that are held while one export runs", len(w.entry("exports").Holders), 1)
		took, err := timed(func() error {
			return exportLocks(client(), "b").Do(background, func(context.Context) error { return nil })
		})
		if err != nil || took > 0 {
			t.Errorf("the export of another tenant took %v: %v; want no wait", took, err)
		}
		all.Wait()
		wantEqual(t, "four exports of a minute took", time.Since(began), 4*time.Minute)
	})
}

// If the pool is always full, callers of a tenant with many exports use up the rounds in
// which they give locks back. Then one of them holds the tenant's mutex while it waits,
// but no permit.
func TestOnlyExportsThatRunHoldPermits(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		var running atomic.Int64
		run := func(tenant string, times int, each time.Duration) func() {
			locks := exportLocks(client(), tenant)
			return func() {
				for range times {
					noError(t, locks.Do(background, func(context.Context) error {
						running.Add(1)
						defer running.Add(-1)
						time.Sleep(each)
						return nil
					}))
				}
			}
		}
		var all sync.WaitGroup
		for i := range 25 {
			all.Go(run("many", 1, time.Duration(50+i)*time.Second))
		}
		for i := range 5 { // more than there are permits
			all.Go(run(fmt.Sprint("one ", i), 20, time.Duration(30+7*i)*time.Second))
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		for {
			select {
			case <-done:
				return
			case <-time.After(7 * time.Second):
			}
			synctest.Wait()
			wantEqual(t, "permits that are held", len(w.entry("exports").Holders), int(running.Load()))
		}
	})
}

// keepBusy keeps a name held by one of several clients at each instant, until stop is
// closed.
func keepBusy(name string, client func() *pawl.Client, each time.Duration, stop chan struct{}, all *sync.WaitGroup) {
	for range 3 {
		m := client().Mutex(name)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = m.Do(background, func(context.Context) error { time.Sleep(each); return nil })
			}
		})
	}
}

func TestNoCallerOfAllStarves(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		var all sync.WaitGroup
		stop := make(chan struct{})
		keepBusy("x", client, 7*time.Second, stop, &all)
		keepBusy("y", client, 11*time.Second, stop, &all)
		keepBusy("z", client, 13*time.Second, stop, &all)
		time.Sleep(time.Minute)
		c := client()
		ctx := timeoutCtx(t, time.Hour)
		took, err := timed(func() error {
			return pawl.All(c.Mutex("x"), c.Mutex("y"), c.Mutex("z")).Do(ctx, func(context.Context) error { return nil })
		})
		// The caller queues in each of eight rounds, and then once for each of three
		// names. At most three claims are ahead each time.
		if most := (8 + 3) * 3 * 13 * time.Second; err != nil || took > most {
			t.Errorf("Do took %v: %v; want no more than %v", took, err, most)
		}
		close(stop)
		all.Wait()
	})
}

// Callers of the same names wait for the first name, which becomes free last. So no
// caller is granted a name while another name is held.
func TestGroupsOfTheSameNamesAreServedInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		var order []int
		var nets []*network
		for i := range 20 {
			c, net := w.client(nil)
			net.setLatency(2 * time.Millisecond)
			nets = append(nets, net)
			all.Go(func() {
				noError(t, pawl.All(c.Mutex("x"), c.Mutex("y"), c.Mutex("z")).Do(background, func(context.Context) error {
					order = append(order, i)
					time.Sleep(time.Second)
					return nil
				}))
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		for i, caller := range order {
			if i != caller {
				t.Fatalf("the callers were served in the order %v", order)
			}
		}
		for i, net := range nets {
			wantEqual(t, fmt.Sprint("releases of caller ", i), net.count("release"), 3)
		}
	})
}

// A value makes the Group hold x while it waits for y. If one lock is lost or refused,
// the Group releases the others without a minimum hold, because no work has begun.
func TestAWaitForAllEndsWhenALockThatItHoldsIsLost(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		c, other := client(), client()
		held := must(other.Mutex("y").Lock(background))(t)
		minHold := pawl.WithMinHold(time.Hour)
		locks := pawl.All(c.Mutex("w", minHold), c.Mutex("x", minHold, pawl.WithValue([]byte("v"))), c.Mutex("y", minHold))
		isError(t, errOf(locks.TryLock(background)), pawl.ErrHeld)
		w.wantFree("w", "x")
		time.AfterFunc(time.Minute, func() {
			x := w.entry("x").Holders
			if len(x) != 1 {
				t.Errorf("x has %d holders, want the Group", len(x))
				return
			}
			noError(t, other.Break(background, "x", x[0].Fence, &pawl.BreakOptions{Delay: -1}))
		})
		took, err := timed(func() error { return errOf(locks.Lock(background)) })
		lost, _ := errors.AsType[*pawl.LostError](err)
		if lost == nil || lost.Name != "x" || lost.Reason != pawl.ReasonBroken {
			t.Errorf("Lock returned %v, want the loss of x", err)
		}
		wantWithin(t, "Lock returned after", took, 0, time.Minute+10*time.Second)
		noError(t, held.Release(background))
		w.wantFree("w", "x", "y")
	})
}

// Groups of any names and kinds, with values or without, are granted within an hour, and
// no two that exclude each other run at the same time. In each world a name is a mutex or
// a semaphore; with mixed it is a mutex to some callers, and a semaphore to others.
func TestGroupsOfAnyNamesAndKindsAllRun(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		for seed := range uint64(4) {
			runInWorld(t, fmt.Sprint("mixed ", mixed, ", seed ", seed), func(t *testing.T, w *world) {
				var all sync.WaitGroup
				var mu sync.Mutex // protects holders and longest
				holders, longest := map[string]int{}, time.Duration(0)
				for i := range 12 {
					c, net := w.client(nil)
					net.oneByOne = seed%2 == 1
					net.setLatency(time.Millisecond)
					dice := rand.New(rand.NewPCG(seed, uint64(i)))
					all.Go(func() {
						for range 10 {
							locks, weights := anyGroup(c, dice, mixed)
							ctx, cancel := context.WithTimeout(background, time.Hour)
							began := time.Now()
							noError(t, locks.Do(ctx, func(context.Context) error {
								mu.Lock()
								longest = max(longest, time.Since(began))
								for name, weight := range weights {
									if holders[name] += weight; holders[name] > permits {
										t.Errorf("VIOLATION: %q has %d of %d", name, holders[name], permits)
									}
								}
								mu.Unlock()
								time.Sleep(100 * time.Millisecond)
								mu.Lock()
								defer mu.Unlock()
								for name, weight := range weights {
									holders[name] -= weight
								}
								return nil
							}))
							cancel()
						}
					})
				}
				all.Wait()
				w.wantFree("a", "b", "c", "d", "e")
				t.Log("the longest wait took", longest)
			})
		}
	}
}

// permits is the number of permits of each semaphore of anyGroup.
const permits = 3

// anyGroup returns locks of two to four of five names, some with values, and the number
// of permits that each of them takes.
func anyGroup(c *pawl.Client, dice *rand.Rand, mixed bool) (locks *pawl.Group, weights map[string]int) {
	var parts []pawl.Lockable
	weights = map[string]int{}
	for _, n := range dice.Perm(5)[:2+dice.IntN(3)] {
		name := string(rune('a' + n))
		isMutex := n%2 == 0
		if mixed {
			isMutex = dice.IntN(2) == 0
		}
		var options []pawl.LockOption
		if dice.IntN(5) == 0 {
			options = append(options, pawl.WithValue([]byte("v")))
		}
		if weights[name] = 1; isMutex {
			weights[name] = permits
			parts = append(parts, c.Mutex(name, options...))
		} else {
			parts = append(parts, c.Semaphore(name, permits, options...).Permits(1))
		}
	}
	return pawl.All(parts...), weights
}

func TestAWaitForAllThatGivesUpNamesTheLockInTheWay(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		c, other := client(), client()
		for _, name := range []string{"x", "y", "z"} {
			held := must(other.Mutex(name).Lock(background))(t)
			for _, wait := range []pawl.LockOption{pawl.WithWait(time.Second), nil} {
				ctx, cancel := context.WithTimeout(background, 2*time.Second)
				locks := pawl.All(c.Mutex("x"), c.Mutex("y", wait), c.Mutex("z"))
				took, err := timed(func() error { return errOf(locks.Lock(ctx)) })
				cancel()
				isError(t, err, context.DeadlineExceeded)
				want := 2 * time.Second
				if wait != nil {
					want = time.Second
				}
				if held, _ := errors.AsType[*pawl.HeldError](err); held == nil || held.Name != name || took != want {
					t.Errorf("Lock returned %v after %v; want a HeldError of %q after %v", err, took, name, want)
				}
			}
			noError(t, held.Release(background))
		}
		w.wantFree("x", "y", "z")
	})
}

// A grant of a lock with a value writes the value, so All does not give such a lock back
// while it waits for another.
func TestAllDoesNotWriteAValueInVain(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		c, other := client(), client()
		value := []byte("5")
		x, y := must(other.Mutex("x").Lock(background))(t), must(other.Mutex("y").Lock(background))(t)
		done := make(chan error)
		go func() {
			done <- pawl.All(c.Mutex("x", pawl.WithValue(value), pawl.WithValueBelow(value)), c.Mutex("y")).Do(background, func(context.Context) error { return nil })
		}()
		time.Sleep(time.Second)
		noError(t, x.Release(background))
		time.Sleep(time.Second)
		wantEqual(t, "holders of x", len(w.entry("x").Holders), 1)
		noError(t, y.Release(background))
		noError(t, <-done)
	})
}

// A caller that gives way inspects the name that it waited for. It holds no lock
// meanwhile, and goes on if Inspect is not answered.
func TestACallerThatGivesWayDoesNotHangWithItsInspect(t *testing.T) {
	inBothModes(t, func(t *testing.T, w *world, client func() *pawl.Client) {
		other := client()
		c, net := w.client(nil)
		asked := make(chan struct{}, 1)
		net.setStuck(func(op string, _ int) bool {
			if op != "inspect" {
				return false
			}
			select {
			case asked <- struct{}{}:
			default:
			}
			return true
		})
		inTheWay := must(other.Mutex("a").Lock(background))(t)
		ctx := timeoutCtx(t, time.Hour)
		ran := make(chan error, 1)
		go func() { // it holds b, because of the value, and waits for a permit of a
			locks := pawl.All(c.Semaphore("a", 2).Permits(1), c.Mutex("b", pawl.WithValue([]byte("v"))))
			ran <- locks.Do(ctx, func(context.Context) error { return nil })
		}()
		synctest.Wait()
		if n := len(w.entry("b").Holders); n != 1 {
			t.Fatalf("b has %d holders, want the Group", n)
		}
		<-asked
		w.wantFree("b")
		took, err := timed(func() error {
			noError(t, inTheWay.Release(background))
			return <-ran
		})
		if err != nil || took > 2*maxRequestTime {
			t.Errorf("the Group ran %v after its locks were free: %v; want %v at most", took, err, 2*maxRequestTime)
		}
		w.wantFree("a", "b")
	})
}
