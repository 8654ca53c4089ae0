package lazyctx

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/bubble"
)

// A Context must behave like context.WithDeadline, used before or after its end.
func TestAContextBehavesLikeContextWithDeadline(t *testing.T) {
	type key struct{}
	errCause := errors.New("cause")
	for _, end := range []struct {
		name string
		by   func(ctx *Context, parent context.CancelCauseFunc)
		err  error
	}{
		{"none", func(*Context, context.CancelCauseFunc) {}, nil},
		{"deadline", func(*Context, context.CancelCauseFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"Cancel", func(ctx *Context, _ context.CancelCauseFunc) { ctx.Cancel() }, context.Canceled},
		{"parent", func(_ *Context, parent context.CancelCauseFunc) { parent(errCause) }, context.Canceled},
	} {
		for _, usedBefore := range []bool{false, true} {
			t.Run(end.name, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "value"))
					defer cancel(nil)
					ctx := WithDeadline(parent, time.Now().Add(time.Second))
					defer ctx.Cancel()
					ran := make(chan struct{}, 2)
					var child context.Context
					if usedBefore {
						var stop func()
						child, stop = context.WithCancel(ctx)
						defer stop()
						context.AfterFunc(ctx, func() { ran <- struct{}{} })
					}
					end.by(ctx, cancel)
					synctest.Wait()
					if !usedBefore {
						var stop func()
						child, stop = context.WithCancel(ctx)
						defer stop()
						context.AfterFunc(ctx, func() { ran <- struct{}{} })
					}
					synctest.Wait()
					if ctx.Err() != end.err || child.Err() != end.err {
						t.Errorf("Err is %v, and %v of its child; want %v", ctx.Err(), child.Err(), end.err)
					}
					select {
					case <-ctx.Done():
						if end.err == nil {
							t.Error("Done is closed")
						}
					default:
						if end.err != nil {
							t.Error("Done is open")
						}
					}
					if (len(ran) == 1) != (end.err != nil) {
						t.Errorf("%d functions of AfterFunc ran", len(ran))
					}
					if end.name == "parent" && !errors.Is(context.Cause(child), errCause) {
						t.Errorf("cause %v", context.Cause(child))
					}
					if ctx.Value(key{}) != "value" || child.Value(key{}) != "value" {
						t.Error("a value is missing")
					}
				})
			})
		}
	}
}

func TestAContextEndsAtTheEarlierDeadline(t *testing.T) {
	parent, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Minute))
	defer cancel()
	want, _ := parent.Deadline()
	ctx := WithDeadline(parent, time.Now().Add(time.Hour))
	defer ctx.Cancel()
	if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("deadline %v, want %v", got, want)
	}
}

func TestAContextIsSafeForConcurrentUse(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	ctx := WithDeadline(parent, time.Now().Add(time.Hour))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			_, _ = ctx.Err(), ctx.Value(ctx)
			<-child.Done()
		})
	}
	wg.Go(cancel)
	wg.Go(ctx.Cancel)
	wg.Wait()
}

// The child contexts of a slowContext end later than it does.
type slowContext struct {
	context.Context
	done chan struct{}
}

func (s *slowContext) Done() <-chan struct{} { return s.done }

func (s *slowContext) Err() error {
	select {
	case <-s.done:
		return context.Canceled
	default:
		return nil
	}
}

// A caller that CallerDone wakes calls Err, and would take nil for an answer of the
// backend.
func TestErrIsSetAsSoonAsTheCallerIsDone(t *testing.T) {
	for range 1000 {
		parent := &slowContext{context.Background(), make(chan struct{})}
		ctx := WithDeadline(parent, time.Now().Add(time.Hour))
		ctx.Done() // makes the context with the timer
		close(parent.done)
		<-ctx.CallerDone()
		if err := ctx.Err(); err != context.Canceled {
			t.Fatalf("Err is %v, want context.Canceled", err)
		}
		ctx.Cancel()
	}
}

// A driver may keep the ctx of a request that it has given up, and use it later.
func TestAStorageGivesEachAttemptItsOwnContext(t *testing.T) {
	var r Storage
	first := r.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	first.Cancel()
	second := r.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	if first == second || first.Err() == nil || second.Err() != nil {
		t.Errorf("Err of the first context is %v, of the second %v", first.Err(), second.Err())
	}
}

func TestWithoutCancelNeverEnds(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer stop()
	for _, ctx := range []context.Context{context.Background(), canceled, late} {
		if lasting := WithoutCancel(ctx); lasting.Err() != nil || lasting.Done() != nil {
			t.Errorf("WithoutCancel of %v ends", ctx)
		}
	}
}
