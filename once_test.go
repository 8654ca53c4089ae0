package pawl_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// loseReply makes the client lose the reply to its next Acquire. After that the backend
// fails for the time outage.
func loseReply(net *network, outage time.Duration) {
	lost := false
	var back time.Time
	net.setHooks(func(string) error {
		if lost && time.Now().Before(back) {
			return errNet
		}
		return nil
	}, func(op string) error {
		if op == "acquire" && !lost {
			lost, back = true, time.Now().Add(outage)
			return errNet
		}
		return nil
	})
}

// The answer to the grant that wrote the key was lost, and the lease has ended since. So
// it is unknown whether another instance has done the task.
func TestAKeyThatTheClaimItselfMayHaveWrittenDoesNotCountAsDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{TTL: 3 * time.Second})
		loseReply(net, 4*time.Second)
		wantRun(t, false, pawl.ErrUnavailable, errNet)(a.Once("report").Do(background, "1", func(context.Context) error { return nil }))
		time.Sleep(time.Minute)
		w.wantFree("report")
	})
}

func TestAFailedTaskRunsAgainOnlyWithAtLeastOnce(t *testing.T) {
	for name, o := range map[string]pawl.OnceOption{"AtMostOnce": nil, "AtLeastOnce": pawl.WithAtLeastOnce()} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			a, b := w.twoClients()
			fails := func(context.Context) error { time.Sleep(time.Second); return errNet }
			ranAgain, failed := make(chan bool), make(chan struct{})
			go func() {
				defer close(failed)
				wantRun(t, true, errNet)(a.Once("report", o).Do(background, "1", fails))
			}()
			synctest.Wait()
			go func() {
				ranAgain <- must(b.Once("report", o).Do(background, "1", func(context.Context) error { return nil }))(t)
			}()
			wantEqual(t, "another instance ran the task", <-ranAgain, o != nil)
			<-failed
			wantRun(t, false)(a.Once("report", o).Do(background, "1", fails))
		})
	}
}

func TestOnceReturnsAnErrorUnlessTheTaskIsDone(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, net *network) {
		never := func(context.Context) error { t.Error("the function ran"); return nil }
		for _, key := range []string{"", string(make([]byte, 1025))} {
			isError(t, errOf(a.Once("report").Do(background, key, never)), pawl.ErrInvalid)
		}
		up := net.down()
		isError(t, errOf(a.Once("report").Do(background, "1", never)), pawl.ErrUnavailable)
		up()
		time.Sleep(time.Minute)
		lease := must(a.Mutex("report").Lock(background))(t)
		isError(t, errOf(a.Once("report").TryDo(background, "1", never)), pawl.ErrHeld)
		noError(t, lease.Release(background))

		other, _ := w.client(nil)
		wantRun(t, true, pawl.ErrHeld)(other.Once("report").Do(background, "0", func(ctx context.Context) error {
			return errOf(a.Once("report").TryDo(ctx, "1", never))
		}))

		// If the key of a task cannot be stored, the task may run again. The error says
		// so.
		wantRun(t, true, pawl.ErrUnavailable)(a.Once("report", pawl.WithAtLeastOnce()).Do(background, "1", func(context.Context) error {
			net.down()
			return nil
		}))
	})
}

// If ctx ends during the function, Do still stores the key.
func TestAKeyIsStoredThoughItsCtxHasEnded(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, _ *network) {
		o := a.Once("report", pawl.WithAtLeastOnce())
		ctx, cancel := context.WithCancel(background)
		wantRun(t, true)(o.Do(ctx, "1", func(context.Context) error { cancel(); return nil }))
		wantRun(t, false)(o.Do(background, "1", func(context.Context) error { return nil }))
	})
}

func TestUnorderedKeysAreStoredSeparately(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		o, other := a.Once("orders", pawl.WithUnorderedKeys()), b.Once("orders", pawl.WithUnorderedKeys())
		for _, key := range []string{"b", "a", "c"} {
			for i, once := range []*pawl.Once{o, other} {
				wantRun(t, i == 0)(once.Do(background, key, func(context.Context) error { return nil }))
			}
		}
		for bytes, want := range map[int]error{222: nil, 223: pawl.ErrInvalid} { // as WithUnorderedKeys says
			named := a.Once(strings.Repeat("x", bytes), pawl.WithUnorderedKeys())
			if _, err := named.Do(background, "a", func(context.Context) error { return nil }); !errors.Is(err, want) {
				t.Errorf("with a name of %d bytes Do returns %v, want %v", bytes, err, want)
			}
		}
		wantRun(t, true)(o.Do(background, "outer", func(ctx context.Context) error {
			wantRun(t, true)(other.Do(ctx, "inner", func(context.Context) error { return nil }))
			return nil
		}))
	})
}

// Twenty instances run a thousand ticks. Their clocks are up to 2 s off, and some are
// killed during a task. No task runs twice, and with WithAtLeastOnce each is done.
func TestAThousandTicksOfTwentyInstances(t *testing.T) {
	for name, o := range map[string]pawl.OnceOption{"AtMostOnce": nil, "AtLeastOnce": pawl.WithAtLeastOnce()} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			const instances, ticks, every = 20, 1000, 10 * time.Second
			var began, done [ticks]atomic.Int32
			start := time.Now().Add(time.Minute)
			var all sync.WaitGroup
			for range instances {
				skew := time.Duration(rand.Int64N(int64(4*time.Second))) - 2*time.Second
				all.Go(func() {
					c, net := w.client(&pawl.Options{TTL: 3 * time.Second})
					for tick := range ticks {
						at := start.Add(time.Duration(tick) * every)
						time.Sleep(time.Until(at.Add(skew)))
						_, _ = c.Once("report", o).Do(background, pawl.TimeKey(at), func(ctx context.Context) error {
							began[tick].Add(1)
							if rand.IntN(10) == 0 { // killed
								net.down()
								<-ctx.Done()
								time.AfterFunc(2*time.Second, func() { net.setHooks(nil, nil) })
								return ctx.Err()
							}
							time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
							done[tick].Add(1)
							return nil
						})
					}
				})
			}
			all.Wait()
			for tick := range ticks {
				switch b, d := began[tick].Load(), done[tick].Load(); {
				case o == nil && b != 1:
					t.Errorf("tick %d began %d times", tick, b)
				case o != nil && d != 1:
					t.Errorf("tick %d was done %d times, and began %d times", tick, d, b)
				}
			}
		})
	}
}

// If the lease of a task was lost, the error does not also say that the key could not be
// stored.
func TestOnceReportsALossOnce(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, _ *network) {
		ran, err := a.Once("report", pawl.WithAtLeastOnce()).Do(background, "1", func(ctx context.Context) error {
			fence, _ := pawl.FenceOf(ctx, "report")
			noError(t, a.Break(background, "report", fence, noDelay))
			return nil
		})
		isError(t, err, pawl.ErrLost)
		if !ran || strings.Contains(err.Error(), "stored") {
			t.Errorf("ran is %v, and the error is %v; want true, and only the loss", ran, err)
		}
	})
}

// Each unordered key has its own name, and so its own fences.
func TestFenceOfFindsTheFenceOfAKey(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, c *pawl.Client, _ *network) {
		for _, once := range []*pawl.Once{c.Once("x"), c.Once("orders", pawl.WithUnorderedKeys())} {
			name := once.LockName("17")
			wantRun(t, true)(once.Do(background, "17", func(ctx context.Context) error {
				w.wantFenceOf(ctx, name)
				return nil
			}))
		}
	})
}
