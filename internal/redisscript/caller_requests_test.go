package redisscript

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// punctualServer is a server whose client keeps deadlines, and ends a request that is
// cut. If inLine is set, the request shares a connection with others, and ends with its
// ctx.
type punctualServer struct {
	Sender // has no other methods
	takes  time.Duration
	inLine bool
	cut    chan struct{}
	cuts   int
}

var errCut = errors.New("connection closed")

func (*punctualServer) Patience() time.Duration { return 0 }
func (*punctualServer) Interruptible() bool     { return true }
func (n *punctualServer) Waiting() func()       { return func() { n.cuts++; n.cut <- struct{}{} } }

func (n *punctualServer) Run(ctx context.Context, _ *Script, _ Call) Reply {
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

// goroutines returns the number of goroutines of boundedSender.
func (p *boundedSender) goroutines() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func TestWhoGivesUpARequestOfItsOwnIsAnsweredSoon(t *testing.T) {
	for _, c := range []struct {
		what   string
		takes  time.Duration
		inLine bool
		within time.Duration
		want   error
		cuts   int
	}{
		{"by the server, in time", answerGrace / 2, false, answerGrace, nil, 0},
		{"by closing the connection", time.Minute, false, answerGrace + 2*giveUpCheckInterval, context.Canceled, 1},
		{"by its ctx, in line with others", time.Minute, true, giveUpCheckInterval, context.Canceled, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				server := &punctualServer{cut: make(chan struct{})}
				p := newBoundedSender(server, t.Context())
				run := func(ctx context.Context) Reply {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					return p.Run(ctx, Acquire, Call{})
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
				if server.cuts != c.cuts || p.goroutines() != 1 {
					t.Errorf("connections were closed %d times, want %d; %d goroutines", server.cuts, c.cuts, p.goroutines())
				}
				// It is not quick any more: a goroutine makes the next request, and
				// closes nothing.
				if began = time.Now(); run(ctx).Err != context.Canceled || time.Since(began) > 0 || server.cuts != c.cuts {
					t.Errorf("the next took %v, and %d connections were closed", time.Since(began), server.cuts)
				}
				p.close()
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestClosingEndsARequestThatItsCallerMakes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		server := &punctualServer{cut: make(chan struct{})}
		p := newBoundedSender(server, life)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		p.Run(ctx, Acquire, Call{})
		server.takes = time.Minute
		time.AfterFunc(time.Second, end)
		if r := p.Run(ctx, Acquire, Call{}); !errors.Is(r.Err, driver.ErrClosed) {
			t.Errorf("%+v, want ErrClosed", r)
		}
		p.close()
		time.Sleep(time.Hour)
		if p.callerRequests.mu.Lock(); len(p.callerRequests.underWay) > 0 || cap(p.callerRequests.underWay) > 8 {
			t.Error("it is kept")
		}
		p.callerRequests.mu.Unlock()
	})
}
