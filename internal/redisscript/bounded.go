package redisscript

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/lazyctx"
)

// A bounded Conn ends each request with its ctx, even if the client library waits for an
// answer, a connection, or a free place in its pool. Neither rueidis nor go-redis does
// that in all cases.
//
// Usually another goroutine makes the request, and the caller waits for the answer or for
// the end of ctx. bounded discards a late answer. The server refuses a late claim,
// because claims have an end. While maxRequests are under way, a new request waits until
// one of them ends, or its own ctx.
//
// Passing a request to another goroutine costs half as much as the request, because it
// wakes a thread. So while the server answers quickly, the caller makes the request
// itself, if the library keeps the deadline. If such a caller gives up, the driver closes
// the connection on which the request waits. While the server is slow or far away, it
// closes no connection, because other requests may share it.
type bounded struct {
	Conn
	*bounds
}

// bounds are the state that a Conn shares with the Conns of its nodes.
type bounds struct {
	client          *Client
	life            context.Context // ends when the driver is closed
	permits         chan struct{}   // has a value for each request that may still be started
	tasks           chan func()     // idle goroutines receive from it
	idleGoroutines  atomic.Int32
	began           time.Time
	lastQuickAnswer atomic.Int64 // its time, counted from began; 0 if a later answer was slow or an error
}

const (
	maxRequests       = 512
	maxIdleGoroutines = 64

	// quickAnswerMaxAge is the age of the last quick answer up to which callers make
	// requests themselves. It is also the least time to the deadline of such a request,
	// because the library closes the connection at the deadline.
	quickAnswerMaxAge = time.Second

	// quickAnswerTime is the longest time for an answer that counts as quick.
	quickAnswerTime = 5 * time.Millisecond

	// serverTimeout bounds a request of the driver itself, which has no ctx of a caller.
	serverTimeout = 5 * time.Second

	// answerGrace is the time for which the driver still waits for the answer after the
	// caller has given up.
	answerGrace = 20 * time.Millisecond
)

func newBounded(c *Client, life context.Context) bounded {
	b := &bounds{client: c, life: life, permits: make(chan struct{}, maxRequests), tasks: make(chan func()), began: time.Now()}
	for range maxRequests {
		b.permits <- struct{}{}
	}
	return bounded{c.Conn, b}
}

// Do implements Conn.
func (b bounded) Do(ctx context.Context, c Command) (p Reply) {
	if _, limited := ctx.Deadline(); !limited && lazyctx.CallerDone(ctx) == nil { // ctx never ends
		return b.Conn.Do(ctx, c)
	}
	now := time.Now()
	if b.mayCallDirectly(ctx, now) {
		p = b.callDirectly(ctx, c)
	} else {
		var err error
		if p, err = runBounded(ctx, b.bounds, func(ctx context.Context) Reply { return b.Conn.Do(ctx, c) }); err != nil {
			return Reply{Err: err}
		}
	}
	if now, took := time.Since(b.began), time.Since(now); p.Err == nil && took < quickAnswerTime {
		b.lastQuickAnswer.Store(max(int64(now), 1))
	} else {
		b.lastQuickAnswer.Store(0)
	}
	return p
}

// mayCallDirectly reports whether the caller may make a request with this ctx itself.
func (b *bounds) mayCallDirectly(ctx context.Context, now time.Time) bool {
	last := b.lastQuickAnswer.Load()
	deadline, limited := ctx.Deadline()
	return last != 0 && now.Sub(b.began)-time.Duration(last) < quickAnswerMaxAge &&
		limited && deadline.Sub(now) >= max(quickAnswerMaxAge, b.client.MinTimeout-answerGrace) &&
		(b.client.RecordWaiting != nil || lazyctx.CallerDone(ctx) == nil)
}

// callDirectly makes a request in the goroutine of its caller.
func (b bounded) callDirectly(ctx context.Context, c Command) Reply {
	if lazyctx.CallerDone(ctx) == nil {
		return b.Conn.Do(ctx, c)
	}
	var answered atomic.Bool
	stop := context.AfterFunc(lazyctx.Caller(ctx), func() {
		interrupt := b.client.RecordWaiting()
		time.AfterFunc(answerGrace, func() {
			if !answered.Load() {
				interrupt()
			}
		})
	})
	p := b.Conn.Do(ctx, c)
	answered.Store(true)
	if gaveUpFirst := !stop(); gaveUpFirst && p.Err != nil {
		p.Err = giveUpErr(ctx)
	}
	return p
}

// DoMany implements Conn.
func (b bounded) DoMany(ctx context.Context, all []Command, together bool) []Reply {
	replies, err := runBounded(ctx, b.bounds, func(ctx context.Context) []Reply { return b.Conn.DoMany(ctx, all, together) })
	if err != nil {
		replies = slices.Repeat([]Reply{{Err: err}}, len(all))
	}
	return replies
}

// nodes returns the servers. It bounds the requests to them, too.
func (b bounded) nodes(ctx context.Context, mastersOnly bool) ([]Node, error) {
	var nodesErr error
	all, err := runBounded(ctx, b.bounds, func(ctx context.Context) (all []Node) {
		all, nodesErr = b.client.Nodes(ctx, mastersOnly)
		return all
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Conn = bounded{all[i].Conn, b.bounds}
	}
	return all, nodesErr
}

// runBounded makes a request in another goroutine. Its error says why the caller no
// longer waits; an error of the request itself is in the answer.
func runBounded[T any](ctx context.Context, b *bounds, f func(ctx context.Context) T) (answer T, err error) {
	libraryCtx := ctx
	if b.client.IdleConns == nil { // at a deadline, the library would close its only connection
		libraryCtx = context.WithoutCancel(ctx)
	}
	if b.life.Err() != nil {
		return answer, driver.ErrClosed
	}
	if _, err := await(ctx, b, b.permits); err != nil {
		return answer, err
	}
	done := make(chan T, 1)
	b.start(func() {
		done <- f(libraryCtx)
		b.permits <- struct{}{}
	})
	return await(ctx, b, done)
}

// await receives from c, or returns why the caller no longer waits. It does not call
// ctx.Done, because then a lazyctx.Context would start a timer.
func await[T any](ctx context.Context, b *bounds, c <-chan T) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	default:
	}
	var timeout <-chan time.Time
	if deadline, limited := ctx.Deadline(); limited {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case v = <-c:
		return v, nil
	case <-timeout:
		return v, context.DeadlineExceeded
	case <-lazyctx.CallerDone(ctx):
		return v, giveUpErr(ctx)
	case <-b.life.Done():
		return v, driver.ErrClosed
	}
}

// start runs f in an idle goroutine, or in a new one. An idle one is quicker, because its
// stack has already grown.
func (b *bounds) start(f func()) {
	select {
	case b.tasks <- f:
		return
	default:
	}
	go func() {
		for f != nil {
			f()
			f = nil
			if b.idleGoroutines.Add(1) <= maxIdleGoroutines {
				select {
				case f = <-b.tasks:
				case <-b.life.Done():
				}
			}
			b.idleGoroutines.Add(-1)
		}
	}()
}

// close waits until the library has ended the requests under way, for 2*serverTimeout at
// most, because a library may be configured without timeouts.
func (b *bounds) close() {
	timeout := time.After(2 * serverTimeout)
	for range maxRequests {
		select {
		case <-b.permits:
		case <-timeout:
			return
		}
	}
}
