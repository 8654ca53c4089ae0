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

// A bounded context must behave like context.WithDeadline, whenever a caller uses Done,
// Err or a child.
func TestContextIsLikeOneWithADeadline(t *testing.T) {
	type key struct{}
	errCause := errors.New("cause")
	for _, end := range []struct {
		name string
		by   func(b *Context, parent context.CancelCauseFunc)
		err  error
	}{
		{"not over", func(*Context, context.CancelCauseFunc) {}, nil},
		{"its time", func(*Context, context.CancelCauseFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"cancelled", func(b *Context, _ context.CancelCauseFunc) { b.Cancel() }, context.Canceled},
		{"its parent", func(_ *Context, parent context.CancelCauseFunc) { parent(errCause) }, context.Canceled},
	} {
		for _, asked := range []bool{false, true} {
			t.Run(end.name, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "value"))
					defer cancel(nil)
					b := WithDeadline(parent, time.Now().Add(time.Second))
					defer b.Cancel()
					ran := make(chan struct{}, 2)
					var child context.Context
					if asked { // before it ends
						var stop func()
						child, stop = context.WithCancel(b)
						defer stop()
						context.AfterFunc(b, func() { ran <- struct{}{} })
					}
					end.by(b, cancel)
					synctest.Wait()
					if !asked {
						var stop func()
						child, stop = context.WithCancel(b)
						defer stop()
						context.AfterFunc(b, func() { ran <- struct{}{} })
					}
					synctest.Wait()
					if b.Err() != end.err || child.Err() != end.err {
						t.Errorf("it says %v, its child %v, want %v", b.Err(), child.Err(), end.err)
					}
					select {
					case <-b.Done():
						if end.err == nil {
							t.Error("it is done")
						}
					default:
						if end.err != nil {
							t.Error("it is not done")
						}
					}
					if (len(ran) == 1) != (end.err != nil) {
						t.Errorf("%d functions ran after it", len(ran))
					}
					if end.name == "its parent" && !errors.Is(context.Cause(child), errCause) {
						t.Errorf("cause %v", context.Cause(child))
					}
					if b.Value(key{}) != "value" || child.Value(key{}) != "value" {
						t.Error("a value is missing")
					}
				})
			})
		}
	}
}

func TestContextEndsWithTheEarlierDeadline(t *testing.T) {
	parent, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Minute))
	defer cancel()
	want, _ := parent.Deadline()
	b := WithDeadline(parent, time.Now().Add(time.Hour))
	defer b.Cancel()
	if got, ok := b.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("deadline %v, want %v", got, want)
	}
}

func TestContextMayBeUsedByMany(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	b := WithDeadline(parent, time.Now().Add(time.Hour))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			child, stop := context.WithTimeout(b, time.Hour)
			defer stop()
			_, _ = b.Err(), b.Value(b)
			<-child.Done()
		})
	}
	wg.Go(cancel)
	wg.Go(b.Cancel)
	wg.Wait()
}

// A slow context ends, and its child contexts end later.
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

// A caller that CallerDone has woken reads Err, and would treat nil as an answer of the
// backend.
func TestContextHasAnErrorFromTheMomentItIsCanceled(t *testing.T) {
	for range 1000 {
		parent := &slowContext{context.Background(), make(chan struct{})}
		b := WithDeadline(parent, time.Now().Add(time.Hour))
		b.Done() // makes the context with the timer
		close(parent.done)
		<-b.CallerDone()
		if err := b.Err(); err != context.Canceled {
			t.Fatalf("it says %v", err)
		}
		b.Cancel()
	}
}

// A driver may keep the ctx of a request that it has given up, and use it later.
func TestEachAttemptHasAContextOfItsOwn(t *testing.T) {
	var r Storage
	first := r.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	first.Cancel()
	second := r.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	if first == second || first.Err() == nil || second.Err() != nil {
		t.Errorf("the first says %v, the second %v", first.Err(), second.Err())
	}
}

func TestWhatLastsDoesNotEndWithTheCtx(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	late, stop := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer stop()
	for _, ctx := range []context.Context{context.Background(), over, late} {
		if lasts := WithoutCancel(ctx); lasts.Err() != nil || lasts.Done() != nil {
			t.Errorf("%v ends", lasts)
		}
	}
}
