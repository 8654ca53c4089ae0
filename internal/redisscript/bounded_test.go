package redisscript

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// hangingServer is a server that ignores ctx, and answers once allowed is closed.
type hangingServer struct {
	Conn    // nil: no other methods
	allowed chan struct{}
	begun   atomic.Int32
}

func (d *hangingServer) Do(context.Context, Command) Reply {
	d.begun.Add(1)
	<-d.allowed
	return Reply{Int: 7}
}

func (d *hangingServer) DoMany(ctx context.Context, all []Command, _ bool) []Reply {
	return slices.Repeat([]Reply{d.Do(ctx, Command{})}, len(all))
}

// lateContext is a ctx that is not canceled yet, though its caller has given up.
type lateContext struct{ context.Context }

func (lateContext) CallerDone() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Without the error, another claim could get the late answer to the abandoned step.
func TestAnAbandonedStepReturnsAnError(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{allowed: make(chan struct{})}
		ctx := lateContext{t.Context()}
		co := newCoalescer(server, &Options{}, t.Context(), &clock{})
		co.stepsUnderWay.Add(1)
		if a := runStep(ctx, co, "key"); a.err == nil {
			t.Errorf("%+v; want an error", a)
		}
		close(server.allowed)
	})
}

// The bound holds for any number of callers, however long the server does not answer.
// Each late answer makes room for a request.
func TestAbandonedRequestsAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{allowed: make(chan struct{})}
		p := newBounded(&Client{Conn: server}, t.Context())
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if r := p.DoMany(cancelled, make([]Command, 2), false); len(r) != 2 || !errors.Is(r[1].Err, context.Canceled) {
			t.Errorf("%+v", r)
		}
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
		close(server.allowed)
		synctest.Wait()
		if n := maxRequests - len(p.permits); n != 0 {
			t.Errorf("%d requests are under way after all answers", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := p.Do(ctx, Command{}); r.Int != 7 {
			t.Errorf("%+v", r)
		}
		p.close()
	})
}

// More callers wait than requests are under way. Each request that ends makes room for
// one of them.
func TestAllWaitingCallersGoOnWhenTheServerAnswersAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{allowed: make(chan struct{})}
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
		time.AfterFunc(time.Second, func() { close(server.allowed) })
		run(4*maxRequests, 2*time.Second, 7)
		p.close()
	})
}

func TestCloseEndsWaitingCallers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		server := &hangingServer{allowed: make(chan struct{})}
		p := newBounded(&Client{Conn: server}, life)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- p.Do(ctx, Command{}).Err }()
		synctest.Wait()
		end()
		if err := <-result; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		time.AfterFunc(time.Minute, func() { close(server.allowed) })
		began := time.Now()
		p.close()
		if took := time.Since(began); took > 2*serverTimeout {
			t.Errorf("Close waited for %v", took)
		}
		if err := p.Do(ctx, Command{}).Err; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		time.Sleep(time.Hour)
	})
}

// The bound also holds for abandoned steps that share scripts.
func TestAbandonedScriptsAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &hangingServer{allowed: make(chan struct{})}
		co := newCoalescer(server, &Options{}, t.Context(), &clock{})
		co.stepsUnderWay.Add(1)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 500 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
					runStep(ctx, co, "free")
					cancel()
				}
			})
		}
		all.Wait()
		if n := server.begun.Load(); n > maxLanes {
			t.Errorf("%d scripts are under way", n)
		}
		co.mu.Lock()
		if n := len(co.gathered); n > 0 {
			t.Errorf("%d abandoned steps are kept", n)
		}
		co.mu.Unlock()
		close(server.allowed)
		synctest.Wait()
		if len(co.lanes) != 0 || len(co.gathered) != 0 {
			t.Errorf("%d scripts are under way, %d steps wait", len(co.lanes), len(co.gathered))
		}
	})
}

// punctualServer is a server whose client can close the connection of a request. With
// pipelined, a request shares a connection with others, and ends with its ctx.
type punctualServer struct {
	Conn      // nil: no other methods
	latency   time.Duration
	pipelined bool
	closed    chan struct{}
	closes    int
}

var errConnClosed = errors.New("connection closed")

func (n *punctualServer) client() *Client {
	return &Client{Conn: n, RecordWaiting: func() func() { return func() { n.closes++; n.closed <- struct{}{} } }}
}

func (n *punctualServer) Do(ctx context.Context, _ Command) Reply {
	answer := time.NewTimer(n.latency)
	defer answer.Stop()
	var ctxDone <-chan struct{}
	if n.pipelined {
		ctxDone = ctx.Done()
	}
	select {
	case <-answer.C:
		return Reply{Int: 7}
	case <-ctxDone:
		return Reply{Err: ctx.Err()}
	case <-n.closed:
		return Reply{Err: errConnClosed}
	}
}

func TestACallerThatGivesUpReturnsSoon(t *testing.T) {
	for _, c := range []struct {
		what      string
		latency   time.Duration
		pipelined bool
		within    time.Duration
		want      error
		closes    int
	}{
		{"the server answers in time", answerGrace / 2, false, answerGrace, nil, 0},
		{"the connection is closed", time.Minute, false, answerGrace, context.Canceled, 1},
		{"the ctx ends a pipelined request", time.Minute, true, 0, context.Canceled, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				server := &punctualServer{closed: make(chan struct{})}
				p := newBounded(server.client(), t.Context())
				run := func(ctx context.Context) Reply {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					return p.Do(ctx, Command{})
				}
				run(t.Context()) // so that the driver considers the server quick
				server.latency, server.pipelined = c.latency, c.pipelined
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				cancel()
				r := run(ctx)
				if took := time.Since(began); !errors.Is(r.Err, c.want) || took > c.within {
					t.Errorf("%+v after %v, want %v within %v", r, took, c.want, c.within)
				}
				if server.closes != c.closes || len(p.permits) != maxRequests {
					t.Errorf("connections were closed %d times, want %d; %d goroutines", server.closes, c.closes, maxRequests-len(p.permits))
				}
				// The server is no longer quick: another goroutine makes the next
				// request, and closes no connection.
				server.pipelined = false
				if began = time.Now(); run(ctx).Err != context.Canceled || time.Since(began) > 0 || server.closes != c.closes {
					t.Errorf("the next took %v, and %d connections were closed", time.Since(began), server.closes)
				}
				time.Sleep(time.Minute)
				p.close()
			})
		})
	}
}
