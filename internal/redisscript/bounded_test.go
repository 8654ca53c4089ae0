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
	Conn  // has no other methods
	may   chan struct{}
	begun atomic.Int32
}

func (d *hangingServer) Do(context.Context, Command) Reply {
	d.begun.Add(1)
	<-d.may
	return Reply{Int: 7}
}

func (d *hangingServer) DoMany(context.Context, []Command, bool) []Reply {
	<-d.may
	return []Reply{{Int: 7}}
}

func TestARequestEndsWithItsCtx(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBounded(&Client{Conn: server}, t.Context())
		for _, cancelled := range []bool{true, false} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			want := context.DeadlineExceeded
			if cancelled {
				want = context.Canceled
				time.AfterFunc(time.Second/2, cancel)
			}
			began := time.Now()
			if r := p.Do(ctx, Command{}); !errors.Is(r.Err, want) || time.Since(began) > time.Second {
				t.Errorf("%+v after %v, want %v", r, time.Since(began), want)
			}
			if all := p.DoMany(ctx, make([]Command, 2), false); len(all) != 2 || !errors.Is(all[1].Err, want) {
				t.Errorf("%+v", all)
			}
			cancel()
		}
		close(server.may)
		synctest.Wait()
		if n := maxRequests - len(p.permits); n != 0 {
			t.Errorf("%d requests are under way when all is answered", n)
		}
		if r := p.Do(t.Context(), Command{}); r.Int != 7 {
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
		ctx := lateContext{t.Context()}
		to := newCoalescer(server, &Options{}, t.Context(), &clock{})
		to.stepsUnderWay.Add(1)
		if a := take(ctx, to, "key"); a.err == nil {
			t.Errorf("%+v, want an error", a)
		}
		close(server.may)
	})
}

// The bound holds however long the server does not answer, and however many callers ask.
func TestThereIsABoundOnRequestsThatWereGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBounded(&Client{Conn: server}, t.Context())
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 1000 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
					if r := p.Do(ctx, Command{}); !errors.Is(r.Err, context.DeadlineExceeded) {
						t.Errorf("%+v", r)
					}
					cancel()
				}
			})
		}
		all.Wait()
		if n := server.begun.Load(); n > maxRequests {
			t.Errorf("%d requests are under way", n)
		}
		close(server.may)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 100 { // and those that end let others begin
			if r := p.Do(ctx, Command{}); r.Int != 7 {
				t.Fatalf("%+v", r)
			}
		}
		p.close()
	})
}

// There are more waiting callers than requests that end, and each of them makes room
// for one.
func TestAllWaitingCallersGoOnWhenTheServerAnswersAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		p := newBounded(&Client{Conn: server}, t.Context())
		run := func(n int, patience time.Duration, want int64) {
			var all sync.WaitGroup
			defer all.Wait()
			for range n {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if r := p.Do(ctx, Command{}); r.Int != want {
						t.Errorf("%+v, want %d", r, want)
					}
				})
			}
		}
		run(maxRequests, time.Millisecond, 0)
		time.AfterFunc(time.Second, func() { close(server.may) })
		run(4*maxRequests, 2*time.Second, 7)
		p.close()
	})
}

func TestClosingEndsRequestsThatAreWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		server := &hangingServer{may: make(chan struct{})}
		p := newBounded(&Client{Conn: server}, life)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		said := make(chan error, 1)
		go func() { said <- p.Do(ctx, Command{}).Err }()
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
		if err := p.Do(ctx, Command{}).Err; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		time.Sleep(time.Hour)
	})
}

// The bound also holds for steps that were sent together and given up.
func TestThereIsABoundOnScriptsThatWereGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{may: make(chan struct{})}
		to := newCoalescer(server, &Options{}, t.Context(), &clock{})
		to.stepsUnderWay.Add(1)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 500 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
					take(ctx, to, "free")
					cancel()
				}
			})
		}
		all.Wait()
		if n := server.begun.Load(); n > maxLanes {
			t.Errorf("%d scripts are under way", n)
		}
		to.mu.Lock()
		if n := len(to.gathered); n > 0 {
			t.Errorf("%d steps that were given up are kept", n)
		}
		to.mu.Unlock()
		close(server.may)
		synctest.Wait()
		if len(to.lanes) != 0 || len(to.gathered) != 0 {
			t.Errorf("%d under way, %d wait", len(to.lanes), len(to.gathered))
		}
	})
}

// punctualServer is a server whose client keeps deadlines, and ends a request that is
// cut. If inLine is set, the request shares a connection with others, and ends with its
// ctx.
type punctualServer struct {
	Conn   // has no other methods
	takes  time.Duration
	inLine bool
	cut    chan struct{}
	cuts   int
}

var errCut = errors.New("connection closed")

func (n *punctualServer) client() *Client {
	return &Client{Conn: n, Waiting: func() func() { return func() { n.cuts++; n.cut <- struct{}{} } }}
}

func (n *punctualServer) Do(ctx context.Context, _ Command) Reply {
	answer := time.NewTimer(n.takes)
	defer answer.Stop()
	var over <-chan struct{}
	if n.inLine {
		over = ctx.Done()
	}
	select {
	case <-answer.C:
		return Reply{Int: 7}
	case <-over:
		return Reply{Err: ctx.Err()}
	case <-n.cut:
		return Reply{Err: errCut}
	}
}

func TestACallerThatGivesUpReturnsSoon(t *testing.T) {
	for _, c := range []struct {
		what   string
		takes  time.Duration
		inLine bool
		within time.Duration
		want   error
		cuts   int
	}{
		{"by the server, in time", answerGrace / 2, false, answerGrace, nil, 0},
		{"by closing the connection", time.Minute, false, answerGrace, context.Canceled, 1},
		{"by its ctx, in line with others", time.Minute, true, 0, context.Canceled, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				server := &punctualServer{cut: make(chan struct{})}
				p := newBounded(server.client(), t.Context())
				run := func(ctx context.Context) Reply {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					return p.Do(ctx, Command{})
				}
				run(t.Context()) // so that the driver knows it as quick
				server.takes, server.inLine = c.takes, c.inLine
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				cancel()
				r := run(ctx)
				if took := time.Since(began); !errors.Is(r.Err, c.want) || took > c.within {
					t.Errorf("%+v after %v, want %v within %v", r, took, c.want, c.within)
				}
				if server.cuts != c.cuts || len(p.permits) != maxRequests {
					t.Errorf("connections were closed %d times, want %d; %d goroutines", server.cuts, c.cuts, maxRequests-len(p.permits))
				}
				// It is not quick any more: a goroutine makes the next request, and
				// closes nothing.
				server.inLine = false
				if began = time.Now(); run(ctx).Err != context.Canceled || time.Since(began) > 0 || server.cuts != c.cuts {
					t.Errorf("the next took %v, and %d connections were closed", time.Since(began), server.cuts)
				}
				time.Sleep(time.Minute)
				p.close()
			})
		})
	}
}
