package redisscript

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// nearby is a server whose client keeps deadlines, and ends a request that is cut. Where
// inLine is set the request is in line with others, and goes by its ctx.
type nearby struct {
	Sender // has no other methods
	takes  time.Duration
	inLine bool
	cut    chan struct{}
	cuts   int
}

var errCut = errors.New("connection closed")

func (*nearby) Patience() time.Duration { return 0 }
func (*nearby) Interruptible() bool     { return true }
func (n *nearby) Waiting() func()       { return func() { n.cuts++; n.cut <- struct{}{} } }

func (n *nearby) Run(ctx context.Context, _ *Script, _ Call) Reply {
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

// goroutines is how many of prompt there are.
func (p *prompt) goroutines() int {
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
		{"by the server, in time", grace / 2, false, grace, nil, 0},
		{"by closing the connection", time.Minute, false, grace + 2*glance, context.Canceled, 1},
		{"by its ctx, in line with others", time.Minute, true, glance, context.Canceled, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &nearby{cut: make(chan struct{})}
				p := newPrompt(server, t.Context())
				run := func(ctx context.Context) Reply {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					return p.Run(ctx, Acquire, Call{})
				}
				run(t.Context()) // so that it is known to be near
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
				// It is not quick any more: the next one is made by a goroutine, and
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
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		server := &nearby{cut: make(chan struct{})}
		p := newPrompt(server, life)
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
		if p.direct.mu.Lock(); len(p.direct.under) > 0 || cap(p.direct.under) > 8 {
			t.Error("it is kept")
		}
		p.direct.mu.Unlock()
	})
}
