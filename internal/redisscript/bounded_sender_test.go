package redisscript

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// hangingServer is a server that ignores ctx, and answers when it may.
type hangingServer struct {
	Sender // has no other methods
	may    chan struct{}
	begun  atomic.Int32
}

func (d *hangingServer) Run(context.Context, *Script, Call) Reply {
	d.begun.Add(1)
	<-d.may
	return Reply{Int: 7}
}

func (d *hangingServer) Scan(_ context.Context, _ string, f func(keys []string)) error {
	<-d.may
	f([]string{"a"})
	return nil
}

func TestARequestEndsWithItsCtxAndIsAnsweredToNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBoundedSender(server, t.Context())
		for _, cancelled := range []bool{true, false} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			want := context.DeadlineExceeded
			if cancelled {
				want = context.Canceled
				time.AfterFunc(time.Second/2, cancel)
			}
			began := time.Now()
			if r := p.Run(ctx, Acquire, Call{}); !errors.Is(r.Err, want) || time.Since(began) > time.Second {
				t.Errorf("%+v after %v, want %v", r, time.Since(began), want)
			}
			if err := p.Scan(ctx, "", func([]string) { t.Error("it is told what was found later") }); !errors.Is(err, want) {
				t.Error(err)
			}
			cancel()
		}
		close(server.may)
		synctest.Wait()
		if n := p.stragglers.Load(); n != 0 {
			t.Errorf("%d stragglers when all is answered", n)
		}
		if r := p.Run(t.Context(), Acquire, Call{}); r.Int != 7 {
			t.Errorf("%+v", r)
		}
		p.close()
	})
}

// lateContext is a ctx whose caller has given up, but which is not cancelled yet.
type lateContext struct{ context.Context }

func (lateContext) CallerDone() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Otherwise another request would get its answer, which comes later.
func TestARequestThatIsGivenUpIsNeverAnsweredWithNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBoundedSender(server, t.Context())
		ctx := lateContext{t.Context()}
		if r := p.Run(ctx, Acquire, Call{}); r.Err == nil {
			t.Errorf("%+v, want an error", r)
		}
		if len(p.idle) != 0 {
			t.Error("it is taken for one that is done")
		}
		to := newCoalescer(server, "", t.Context(), &clock{})
		to.stepsUnderWay.Add(1)
		if answer, _, err := to.do(ctx, time.Now(), "key", aStep); err == nil {
			t.Errorf("%v, want an error", answer)
		}
		close(server.may)
		p.close()
	})
}

// The bound holds however long the server does not answer, and however many callers ask.
func TestThereIsABoundOnRequestsThatWereGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBoundedSender(server, t.Context())
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 1000 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
					if r := p.Run(ctx, Acquire, Call{}); !errors.Is(r.Err, context.DeadlineExceeded) {
						t.Errorf("%+v", r)
					}
					cancel()
				}
			})
		}
		all.Wait()
		if n := server.begun.Load(); n > maxStragglers+16 {
			t.Errorf("%d requests are under way", n)
		}
		close(server.may)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 100 { // and those that end let others begin
			if r := p.Run(ctx, Acquire, Call{}); r.Int != 7 {
				t.Fatalf("%+v", r)
			}
		}
		p.close()
	})
}

// There are more waiting callers than stragglers that end, and each straggler makes room
// for one.
func TestAllWhoWaitForRoomGoOnWhenTheServerAnswersAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBoundedSender(server, t.Context())
		run := func(n int, patience time.Duration, want int64) {
			var all sync.WaitGroup
			defer all.Wait()
			for range n {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if r := p.Run(ctx, Acquire, Call{}); r.Int != want {
						t.Errorf("%+v, want %d", r, want)
					}
				})
			}
		}
		run(maxStragglers, time.Millisecond, 0)
		time.AfterFunc(time.Second, func() { close(server.may) })
		run(4*maxStragglers, 2*time.Second, 7)
		p.close()
	})
}

func TestClosingEndsRequestsThatAreWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		server := &hangingServer{may: make(chan struct{})}
		p := newBoundedSender(server, life)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		said := make(chan error, 1)
		go func() { said <- p.Run(ctx, Acquire, Call{}).Err }()
		synctest.Wait()
		end()
		if err := <-said; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		time.AfterFunc(time.Minute, func() { close(server.may) })
		began := time.Now()
		p.close()
		if took := time.Since(began); took > 2*serverTimeout {
			t.Errorf("closing waited for %v", took)
		}
		if err := p.Run(ctx, Acquire, Call{}).Err; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		time.Sleep(time.Hour)
	})
}

// The bound also holds for steps that were sent together and given up.
func TestThereIsABoundOnScriptsThatWereGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		to := newCoalescer(server, "", t.Context(), &clock{})
		if _, alone, _ := to.do(t.Context(), time.Now(), "first", aStep); !alone {
			t.Fatal("the first was not alone")
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 500 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
					_, _, _ = to.do(ctx, time.Now(), "free", aStep)
					to.endStep()
					cancel()
				}
			})
		}
		all.Wait()
		if n := server.begun.Load(); n > maxLanes {
			t.Errorf("%d scripts are under way", n)
		}
		to.mu.Lock()
		if n := len(to.next); n > 0 {
			t.Errorf("%d steps that were given up are kept", n)
		}
		to.mu.Unlock()
		close(server.may)
		synctest.Wait()
		if len(to.lanes) != 0 || len(to.next) != 0 {
			t.Errorf("%d under way, %d wait", len(to.lanes), len(to.next))
		}
	})
}
