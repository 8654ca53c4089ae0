package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

func TestALeaderThatLosesItsLeaseCampaignsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(&pawl.Options{TTL: 9 * time.Second})
		b, _ := w.client(&pawl.Options{TTL: 9 * time.Second})
		terms := make(chan string, 10)
		run := func(c *pawl.Client, name string, stop time.Duration) {
			go c.Election("jobs").Run(background, func(ctx context.Context) error {
				terms <- name
				<-ctx.Done()
				time.Sleep(stop)
				terms <- name + " stopped"
				return ctx.Err()
			})
			synctest.Wait()
		}
		run(a, "a", 0)
		run(b, "b", 0)
		up := net.down()
		began := time.Now()
		for _, want := range []string{"a", "a stopped", "b"} {
			if got := <-terms; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		wantWithin(t, "the next leader's term begins after", time.Since(began), 0, 9*time.Second+100*time.Millisecond)
		up()
		e := w.entry("jobs")
		time.Sleep(30 * time.Second)
		noError(t, b.Break(background, "jobs", e.Holders[0].Fence, &pawl.BreakOptions{Delay: time.Second}))
		for _, want := range []string{"b stopped", "a"} {
			if got := <-terms; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

func TestTheResultOfAnElectedFunctionEndsRun(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		e := a.Election("jobs")
		noError(t, e.Run(background, func(context.Context) error { return nil }))
		isError(t, e.Run(background, func(context.Context) error { return errNet }), errNet)
		w.wantFree("jobs")
		if inGoroutine(func() { _ = e.Run(background, func(context.Context) error { panic("elected") }) }) != "elected" {
			t.Error("the panic is lost")
		}
		w.wantFree("jobs")

		// Run returns the function's own error, even if the lead was lost.
		failed := make(chan error)
		go func() {
			failed <- e.Run(background, func(ctx context.Context) error {
				<-ctx.Done()
				return errNet
			})
		}()
		synctest.Wait()
		noError(t, a.Break(background, "jobs", w.entry("jobs").Holders[0].Fence, noDelay))
		isError(t, <-failed, errNet, pawl.ErrLost)

		ctx := timeoutCtx(t, time.Second)
		b, _ := w.client(nil)
		must(b.Mutex("jobs").Lock(background))(t)
		isError(t, e.Run(ctx, func(context.Context) error { return nil }), context.DeadlineExceeded, pawl.ErrHeld)
		isError(t, a.Election("").Run(background, func(context.Context) error { return nil }), pawl.ErrInvalid)
		noError(t, a.Close())
		isError(t, e.Run(background, func(context.Context) error { return nil }), pawl.ErrClosed)
	})
}

func TestABackendThatIsDownEndsNoCampaign(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, net *network) {
		up := net.down()
		led := make(chan time.Time)
		go a.Election("jobs").Run(background, func(context.Context) error { led <- time.Now(); return nil })
		time.Sleep(time.Hour)
		wantWithin(t, "claims in an hour", net.count("acquire"), 0, 3600*4)
		up()
		back := time.Now()
		wantWithin(t, "from the return of the backend to the term", (<-led).Sub(back), 0, 11*time.Second)
	})
}

func TestElectionWatchYieldsTheLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		e := a.Election("jobs", pawl.WithValue([]byte("a")))
		ctx, cancel := context.WithCancel(background)
		var seen []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l, err := range b.Election("jobs").Watch(ctx) {
				noError(t, err)
				seen = append(seen, fmt.Sprint(l.Term > 0, " ", string(l.Value)))
			}
		}()
		time.Sleep(10 * time.Second)
		noError(t, e.Run(ctx, func(ctx context.Context) error {
			time.Sleep(20 * time.Second)
			briefCtx, stop := context.WithTimeout(ctx, 10*time.Second)
			defer stop()
			isError(t, errOf(b.Mutex("jobs").Lock(briefCtx)), pawl.ErrHeld) // another waiter is no change of the leader
			time.Sleep(10 * time.Second)
			return errors.Join(e.SetValue(ctx, []byte("b")), func() error { time.Sleep(20 * time.Second); return nil }())
		}))
		time.Sleep(20 * time.Second)
		cancel()
		<-done
		wantEqual(t, "the leaders", fmt.Sprint(seen), "[false  true a true b false ]")
	})
}

func TestStatusSaysWhyAnInstanceDoesNotLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b, net, a := w.twoWithNetwork()
		first, second := a.Election("jobs"), b.Election("jobs")
		if err := first.Status(); err == nil || errors.Is(err, pawl.ErrHeld) {
			t.Errorf("before Run, Status returns %v", err)
		}
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		_, ended := campaign(ctx, t, first)
		noError(t, first.Status())
		wantEqual(t, "IsLeader of the leader", first.IsLeader(), true)
		wantEqual(t, "IsLeader of the standby", second.IsLeader(), false)

		up := net.down()
		campaign(background, t, second)
		isError(t, second.Status(), pawl.ErrUnavailable)
		time.Sleep(time.Minute) // through pauses and campaigns
		isError(t, second.Status(), pawl.ErrUnavailable)
		up()
		time.Sleep(11 * time.Second)
		isError(t, second.Status(), pawl.ErrHeld)
		if held, ok := errors.AsType[*pawl.HeldError](second.Status()); !ok || held.Holders != 1 {
			t.Errorf("Status does not name the leader: %v", second.Status())
		}

		noError(t, a.Break(background, "jobs", w.entry("jobs").Holders[0].Fence, &pawl.BreakOptions{Delay: time.Minute}))
		synctest.Wait()
		if why, ok := errors.AsType[*pawl.LostError](first.Status()); !ok || why.Reason != pawl.ReasonBroken {
			t.Errorf("after the break, Status returns %v, want ReasonBroken", first.Status())
		}
		cancel()
		<-ended
		isError(t, first.Status(), context.Canceled)
		time.Sleep(2 * time.Minute)
		noError(t, second.Status())
	})
}

// campaign runs an election until ctx ends or the lead is lost. It returns when Run
// waits. awaitTerm waits until the term begins.
func campaign(ctx context.Context, t *testing.T, e *pawl.Election) (awaitTerm func(), ended <-chan error) {
	began, done := make(chan struct{}, 9), make(chan error, 1)
	go func() {
		done <- e.Run(ctx, func(ctx context.Context) error { began <- struct{}{}; <-ctx.Done(); return ctx.Err() })
	}()
	synctest.Wait()
	return func() {
		t.Helper()
		select {
		case <-began:
		case err := <-done:
			t.Fatalf("Run ended: %v", err)
		}
	}, done
}

// A value that was set while an instance waited is written when its term begins. If that
// request fails, the function runs all the same, and the write is repeated.
func TestALeaderLeadsThoughItsNewValueCannotBeWrittenYet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		failures := make(chan pawl.FailedEvent, 10)
		a, _ := w.client(nil)
		b, net := w.client(&pawl.Options{Observer: &pawl.Observer{Failed: func(e pawl.FailedEvent) { failures <- e }}})
		held := must(a.Mutex("jobs").Lock(background))(t)
		e := b.Election("jobs", pawl.WithValue([]byte("old")))
		ctx, cancel := context.WithCancel(background)
		awaitTerm, ended := campaign(ctx, t, e)
		noError(t, e.SetValue(background, []byte("new")))
		fails := 3
		net.setHooks(func(op string) error {
			if op == "renew" && fails > 0 {
				fails--
				return errNet
			}
			return nil
		}, nil)
		noError(t, held.Release(background))
		awaitTerm()
		isError(t, (<-failures).Err, pawl.ErrUnavailable)
		wantLeaderValue(t, e, "old")
		time.Sleep(15 * time.Second) // too short for three renewals of the lease
		wantLeaderValue(t, e, "new")
		wantEqual(t, "failures that are left", fails, 0)
		cancel()
		isError(t, <-ended, context.Canceled)
		w.wantFree("jobs")
	})
}

// wantLeaderValue fails the test unless the leader has this value.
func wantLeaderValue(t *testing.T, e *pawl.Election, want string) {
	t.Helper()
	if l, err := e.Leader(background); err != nil || string(l.Value) != want {
		t.Errorf("the value is %q, %v; want %q", l.Value, err, want)
	}
}

// If a write of a value fails, its repetition does not overwrite a later value.
func TestALateWriteOfAValueDoesNotReplaceALaterOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net, other := w.twoWithNetwork()
		held := must(other.Mutex("jobs").Lock(background))(t)
		e := a.Election("jobs")
		ctx, cancel := context.WithCancel(background)
		awaitTerm, ended := campaign(ctx, t, e)
		noError(t, e.SetValue(background, []byte("first")))
		net.setHooks(nil, failRequests("renew"))
		noError(t, held.Release(background))
		awaitTerm()
		net.setHooks(nil, nil)
		noError(t, e.SetValue(background, []byte("second")))
		time.Sleep(time.Minute)
		wantLeaderValue(t, e, "second")
		cancel()
		isError(t, <-ended, context.Canceled)
	})
}

func TestAFunctionThatResignedEndsRunWithAnErrorOfItsOwn(t *testing.T) {
	withClient(t, func(t *testing.T, _ *world, a *pawl.Client, _ *network) {
		e := a.Election("jobs")
		runs := 0
		err := e.Run(background, func(ctx context.Context) error {
			if runs++; runs > 1 {
				return nil
			}
			e.Resign()
			<-ctx.Done()
			return errNet
		})
		isError(t, err, errNet)
		wantEqual(t, "runs", runs, 1)
	})
}

// A name keeps the value of the last writer. If a leader has no value, or another lock
// has the name, Leader does not show the value of the last leader. A lease that is kept
// for its minimum hold does not lead.
func TestALeaderWithoutAValueDoesNotShowAnEarlierOne(t *testing.T) {
	withClient(t, func(t *testing.T, w *world, a *pawl.Client, _ *network) {
		e := a.Election("jobs", pawl.WithValue([]byte("here")))
		noError(t, e.Run(background, func(context.Context) error { return nil }))
		held := must(a.Mutex("jobs").Lock(background))(t)
		l, err := e.Leader(background)
		if err != nil || l.Term != held.Fence() || l.Value != nil {
			t.Errorf("the leader is %+v, %v; want the term %d without a value", l, err, held.Fence())
		}
		noError(t, held.Release(background))

		noError(t, must(a.Mutex("jobs", pawl.WithMinHold(time.Minute)).Lock(background))(t).Release(background))
		if l, err := e.Leader(background); err != nil || l.Term != 0 || len(w.entry("jobs").Holders) != 1 {
			t.Errorf("the leader is %+v, %v; want none", l, err)
		}
	})
}

func TestAValueThatIsSetDuringTheWaitIsPublished(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.twoClients()
		holder := must(b.Mutex("jobs").Lock(background))(t)
		e := a.Election("jobs", pawl.WithValue([]byte("old")))
		done := make(chan error)
		go func() {
			done <- e.Run(background, func(context.Context) error {
				wantLeaderValue(t, e, "new")
				return nil
			})
		}()
		synctest.Wait()
		noError(t, e.SetValue(background, []byte("new")))
		isError(t, e.Run(background, func(context.Context) error { return nil }), pawl.ErrInvalid)
		isError(t, e.Run(nil, func(context.Context) error { return nil }), pawl.ErrInvalid) //nolint:staticcheck // Run must refuse it
		noError(t, holder.Release(background))
		noError(t, <-done)
	})
}

// The release notifies the next leader, which sends no request before its term begins.
func TestShutdownLetsTheNextLeaderBeginAtOnce(t *testing.T) {
	for how, want := range map[string]error{"Shutdown": pawl.ErrClosed, "Stop": context.Canceled} {
		runInWorld(t, how, func(t *testing.T, w *world) {
			a, leaderNet := w.client(nil)
			b, standbyNet := w.client(nil)
			requests := func() (n int) {
				for _, op := range []string{"acquire", "renew", "release", "inspect"} {
					n += leaderNet.count(op) + standbyNet.count(op)
				}
				return n
			}
			ctx, stop := context.WithCancel(background)
			defer stop()
			_, ended := campaign(ctx, t, a.Election("jobs"))
			led := make(chan int)
			go b.Election("jobs").Run(background, func(context.Context) error { led <- requests(); return nil })
			synctest.Wait()
			began, before := time.Now(), requests()
			if how == "Stop" {
				stop()
			} else {
				go a.Shutdown(background)
			}
			wantEqual(t, "requests before the next term (one is the release)", <-led-before, 1)
			wantEqual(t, "the next term begins after", time.Since(began), 0)
			isError(t, <-ended, want)
		})
	}
}
