package pawl_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// A value that was set while an instance waited is written with its term. The backend may
// fail that one request: the function runs all the same, and the value follows.
func TestALeaderLeadsThoughItsNewValueCannotBeWrittenYet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		told := make(chan pawl.FailedEvent, 10)
		a, _ := w.client(nil)
		b, net := w.client(&pawl.Options{Observer: &pawl.Observer{Failed: func(e pawl.FailedEvent) { told <- e }}})
		held := must(t)(a.Mutex("jobs").Lock(background))
		e := b.Election("jobs", pawl.WithValue([]byte("old")))
		led, stop := make(chan struct{}), make(chan struct{})
		ended := make(chan error)
		go func() {
			ended <- e.Run(background, func(context.Context) error { close(led); <-stop; return nil })
		}()
		synctest.Wait()
		noError(t, e.SetValue(background, []byte("new")))
		fails := 3
		net.set(func(op string) error {
			if op == "renew" && fails > 0 {
				fails--
				return errNet
			}
			return nil
		}, nil)
		noError(t, held.Release(background))
		select {
		case <-led:
		case err := <-ended:
			t.Fatalf("Run ended: %v", err)
		}
		isError(t, (<-told).Err, pawl.ErrUnavailable)
		if l, err := e.Leader(background); err != nil || string(l.Value) != "old" {
			t.Errorf("while it cannot be written: %+v, %v", l, err)
		}
		time.Sleep(15 * time.Second) // less than until the lease would be renewed three times
		if l, err := e.Leader(background); err != nil || string(l.Value) != "new" || fails > 0 {
			t.Errorf("when the backend is back: %+v, %v", l, err)
		}
		close(stop)
		noError(t, <-ended)
		w.free("jobs")
	})
}

// Of two values, one of which could not be written yet, the later one is kept.
func TestAValueThatWasLateDoesNotReplaceALaterOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, net := w.client(nil)
		other, _ := w.client(nil)
		held := must(t)(other.Mutex("jobs").Lock(background))
		e := a.Election("jobs")
		led := make(chan struct{})
		ctx, cancel := context.WithCancel(background)
		ended := make(chan error)
		go func() {
			ended <- e.Run(ctx, func(ctx context.Context) error { close(led); <-ctx.Done(); return ctx.Err() })
		}()
		synctest.Wait()
		noError(t, e.SetValue(background, []byte("first")))
		net.set(nil, func(op string) error { // it is written, and not answered
			if op == "renew" {
				return errNet
			}
			return nil
		})
		noError(t, held.Release(background))
		select {
		case <-led:
		case err := <-ended:
			t.Fatalf("Run ended: %v", err)
		}
		net.set(nil, nil)
		noError(t, e.SetValue(background, []byte("second")))
		time.Sleep(time.Minute)
		if l, err := e.Leader(background); err != nil || string(l.Value) != "second" {
			t.Errorf("%+v, %v", l, err)
		}
		cancel()
		isError(t, <-ended, context.Canceled)
	})
}

func TestAFunctionThatResignedEndsRunWithAnErrorOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
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
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

// What the name keeps is of the last who wrote it: a leader that says nothing of itself,
// or a lock of that name, does not say what the last leader did.
func TestALeaderThatSaysNothingDoesNotShowWhatTheLastOneSaid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		e := a.Election("jobs", pawl.WithValue([]byte("here")))
		noError(t, e.Run(background, func(context.Context) error { return nil }))
		held := must(t)(a.Mutex("jobs").Lock(background))
		l, err := e.Leader(background)
		if err != nil || l.Term != held.Fence() || l.Value != nil {
			t.Errorf("%+v, %v", l, err)
		}
		noError(t, held.Release(background))
	})
}

// A lease that is kept for its minimum hold leads nobody.
func TestWhoHasReleasedDoesNotLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		noError(t, must(t)(a.Mutex("jobs", pawl.WithMinHold(time.Minute)).Lock(background)).Release(background))
		if l, err := a.Election("jobs").Leader(background); err != nil || l.Term != 0 || len(w.entry("jobs").Holders) != 1 {
			t.Errorf("%+v leads, %v", l, err)
		}
	})
}
