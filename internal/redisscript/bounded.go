package redisscript

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// A bounded Conn is one whose requests end with their ctx, whatever the client waits for:
// an answer, a connection, or a free place in its pool. Neither rueidis nor go-redis does
// that in all cases.
//
// In general a goroutine makes the request, and its caller waits for the answer or for
// the end of ctx. The server refuses a claim after its end, and an answer that comes
// later is discarded. While there are maxRequests, a new request waits, until its own ctx
// ends.
//
// The hand-over to a goroutine costs half as much as the request, because it wakes a
// thread. So the caller makes the request itself while the server answers quickly, if the
// client keeps the deadline. If the caller gives up, the driver closes the connection
// that the request waits on. It does not do that to a server that is slow or far away,
// because the requests of others may share the connection.
type bounded struct {
	Conn
	*bounds
}

// bounds are the state that a Conn shares with the Conns of its nodes.
type bounds struct {
	client *Client
	life   context.Context
	free   chan struct{} // has one for each further request that a goroutine may make
	next   chan func()   // received by goroutines that are idle
	idle   atomic.Int32
	began  time.Time
	quick  atomic.Int64 // the time of the last answer, since began; 0 if it was slow or an error
}

const (
	maxRequests = 512
	maxIdle     = 64

	// quickAnswerMaxAge is the age of the last quick answer up to which the driver takes
	// the connection to be alive. It is also the least time that a request needs to its
	// deadline, because the client closes the connection then.
	quickAnswerMaxAge = time.Second

	// quickAnswerTime is the longest time for an answer of a server that counts as quick.
	quickAnswerTime = 5 * time.Millisecond

	// serverTimeout is the time that one server has for its answers to a request of the
	// driver itself, which no ctx of a caller bounds.
	serverTimeout = 5 * time.Second

	// answerGrace is the time that the server still has for an answer after the caller
	// has given up.
	answerGrace = 20 * time.Millisecond
)

func newBounded(c *Client, life context.Context) bounded {
	b := &bounds{client: c, life: life, free: make(chan struct{}, maxRequests), next: make(chan func()), began: time.Now()}
	for range maxRequests {
		b.free <- struct{}{}
	}
	return bounded{c.Conn, b}
}

// Do implements Conn.
func (b bounded) Do(ctx context.Context, c Command) (p Reply) {
	if _, limited := ctx.Deadline(); !limited && lazyctx.CallerDone(ctx) == nil { // it never ends
		return b.Conn.Do(ctx, c)
	}
	now := time.Now()
	if b.mayCall(ctx, now) {
		p = b.call(ctx, c)
	} else {
		var err error
		if p, err = inTime(ctx, b.bounds, func(ctx context.Context) Reply { return b.Conn.Do(ctx, c) }); err != nil {
			return Reply{Err: err}
		}
	}
	if now, took := time.Since(b.began), time.Since(now); p.Err == nil && took < quickAnswerTime {
		b.quick.Store(max(int64(now), 1))
	} else {
		b.quick.Store(0)
	}
	return p
}

// mayCall reports whether the caller may make a request with this ctx itself.
func (b *bounds) mayCall(ctx context.Context, now time.Time) bool {
	last := b.quick.Load()
	deadline, limited := ctx.Deadline()
	return last != 0 && now.Sub(b.began)-time.Duration(last) < quickAnswerMaxAge &&
		limited && deadline.Sub(now) >= max(quickAnswerMaxAge, b.client.Patience-answerGrace) &&
		(b.client.Waiting != nil || lazyctx.CallerDone(ctx) == nil)
}

// call makes a request in the goroutine of its caller.
func (b bounded) call(ctx context.Context, c Command) Reply {
	if lazyctx.CallerDone(ctx) == nil {
		return b.Conn.Do(ctx, c)
	}
	var answered atomic.Bool
	stop := context.AfterFunc(lazyctx.Caller(ctx), func() {
		interrupt := b.client.Waiting()
		time.AfterFunc(answerGrace, func() {
			if !answered.Load() {
				interrupt()
			}
		})
	})
	p := b.Conn.Do(ctx, c)
	answered.Store(true)
	if gaveUpFirst := !stop(); gaveUpFirst && p.Err != nil {
		p.Err = gaveUp(ctx)
	}
	return p
}

// DoMany implements Conn.
func (b bounded) DoMany(ctx context.Context, all []Command, together bool) []Reply {
	replies, err := inTime(ctx, b.bounds, func(ctx context.Context) []Reply { return b.Conn.DoMany(ctx, all, together) })
	if err != nil {
		replies = make([]Reply, len(all))
		for i := range replies {
			replies[i].Err = err
		}
	}
	return replies
}

// nodes returns the servers, whose requests are bounded, too.
func (b bounded) nodes(ctx context.Context, masters bool) ([]Node, error) {
	var failed error
	all, err := inTime(ctx, b.bounds, func(ctx context.Context) (all []Node) {
		all, failed = b.client.Nodes(ctx, masters)
		return all
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Conn = bounded{all[i].Conn, b.bounds}
	}
	return all, failed
}

// inTime makes a request in a goroutine. Its error says why the caller does not wait for
// the answer; the request's own error is in the answer.
func inTime[T any](ctx context.Context, b *bounds, f func(ctx context.Context) T) (answer T, err error) {
	own := ctx
	if b.client.Idle == nil { // at its deadline, the client would close the connection that all requests share
		own = context.WithoutCancel(ctx)
	}
	if b.life.Err() != nil {
		return answer, driver.ErrClosed
	}
	if _, err := await(ctx, b, b.free); err != nil {
		return answer, err
	}
	done := make(chan T, 1)
	b.start(func() {
		done <- f(own)
		b.free <- struct{}{}
	})
	return await(ctx, b, done)
}

// await receives from c, or returns why the caller of ctx does not wait any longer. It
// does not call ctx.Done, because a lazyctx.Context then makes a context with a timer.
func await[T any](ctx context.Context, b *bounds, c <-chan T) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	default:
	}
	var late <-chan time.Time
	if deadline, limited := ctx.Deadline(); limited {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case v = <-c:
		return v, nil
	case <-late:
		return v, context.DeadlineExceeded
	case <-lazyctx.CallerDone(ctx):
		return v, gaveUp(ctx)
	case <-b.life.Done():
		return v, driver.ErrClosed
	}
}

// start runs f in a goroutine that has made another request, or in a new one, whose stack
// has yet to grow.
func (b *bounds) start(f func()) {
	select {
	case b.next <- f:
		return
	default:
	}
	go func() {
		for f != nil {
			f()
			f = nil
			if b.idle.Add(1) <= maxIdle {
				select {
				case f = <-b.next:
				case <-b.life.Done():
				}
			}
			b.idle.Add(-1)
		}
	}()
}

// close waits until the client has given up the requests that are under way, but not for
// ever, because a client may be set to wait for ever.
func (b *bounds) close() {
	timeout := time.After(2 * serverTimeout)
	for range maxRequests {
		select {
		case <-b.free:
		case <-timeout:
			return
		}
	}
}
