package postgreslock

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A request is one use of a connection. If the caller's ctx ends before the answer
// arrives, pgx closes the connection, and the next request needs a new one. On a slow
// server a new connection costs more than the request, and makes the server even slower.
// So if the server was slow in the last minute, a request runs in a goroutine: its caller
// returns when ctx ends, and the goroutine waits a little longer. A request that waits
// long for a locked row also runs in a goroutine, on any server. Other requests to a
// quick server do not, because passing an answer between goroutines may take 0.1 ms.
type request struct {
	ctx        context.Context // the caller's ctx, or one that awaitAnswer ends
	closeAfter time.Duration   // see closeSocket

	mu             sync.Mutex // protects the fields below
	conn           *pgx.Conn  // nil until the request has one
	callerReturned bool
}

const (
	slowThreshold = 100 * time.Millisecond // a longer request means that the server is slow
	slowPeriod    = time.Minute            // the time after such a request for which the server counts as slow
	answerTimeout = 2 * time.Second        // the time for which a request without a caller waits for its answer
)

// request runs f with a connection. f may still run after request has returned the error
// of ctx. So f must use the caller's variables only in whileAwaited.
func (s *store) request(ctx context.Context, f func(r *request) error) error {
	began := time.Now()
	if last := s.lastSlow.Load(); last == nil || began.Sub(*last) > slowPeriod {
		defer s.recordTime(began)
		return s.run(&request{ctx: ctx, closeAfter: answerTimeout}, f)
	}
	return s.requestInBackground(ctx, answerTimeout, func() { s.recordTime(began) }, f)
}

// requestInBackground runs a request in its own goroutine, on any server. After its
// caller has returned, the request waits for its answer for the time wait. At its end,
// the goroutine calls atEnd.
func (s *store) requestInBackground(ctx context.Context, wait time.Duration, atEnd func(), f func(r *request) error) error {
	requestCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &request{ctx: requestCtx}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		defer atEnd()
		err = s.run(r, f)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case <-done: // the answer arrived when ctx ended
		return err
	default:
	}
	connected := r.markReturned()
	if !connected {
		wait = answerTimeout // the request waits for a connection, not for a row
	}
	if others := s.awaitAnswer(wait, cancel, done); !connected && others == 0 && isExhausted(s) {
		return exhaustedError{ctx.Err()}
	}
	return ctx.Err()
}

// awaitAnswer lets a request without a caller wait for its answer, and returns the number
// of other such requests. If the answer takes too long, cancel stops the wait for a
// connection, or makes pgx close the connection. If there are too many such requests,
// this one does not wait, because the pool has to serve callers, too. For requests that
// wait for a locked row, longWaits is the limit.
func (s *store) awaitAnswer(wait time.Duration, cancel func(), done <-chan struct{}) (others int) {
	others = len(s.abandoned)
	freeSlot := func() {}
	if wait == answerTimeout {
		select {
		case s.abandoned <- struct{}{}:
			freeSlot = func() { <-s.abandoned }
		default:
			wait = 0
		}
	}
	s.running.Go(func() {
		defer freeSlot()
		boundedCtx, stop := context.WithTimeout(s.closing, wait)
		defer stop()
		select {
		case <-done:
		case <-boundedCtx.Done():
			cancel()
			<-done
		}
	})
	return others
}

// recordTime records that the server is slow if a request took long.
func (s *store) recordTime(began time.Time) {
	if now := time.Now(); now.Sub(began) > slowThreshold {
		s.lastSlow.Store(&now)
	}
}

func (s *store) run(r *request, f func(r *request) error) error {
	c, free, err := s.connect(r.ctx)
	if err != nil {
		if r.ctx.Err() != nil && isExhausted(s) {
			err = exhaustedError{err}
		}
		return err
	}
	if !r.setConn(c) {
		free()
		return nil
	}
	defer free() // before the caller gets its answer, so that its next request can use the connection
	err = f(r)
	if isStandby(err) {
		s.ready.Store(false) // so that the driver checks the next connection
		_ = c.Close(r.ctx)
	}
	if c.IsClosed() {
		s.closeSocket(c, r.closeAfter)
	}
	return err
}

// closeSocket closes the socket of a connection that pgx has closed because its ctx
// ended. pgx waits up to 15 s for the server to close it, too, and meanwhile the pool
// does not replace it. closeSocket waits for the time after.
func (s *store) closeSocket(c *pgx.Conn, after time.Duration) {
	s.running.Go(func() {
		boundedCtx, cancel := context.WithTimeout(s.closing, after)
		defer cancel()
		select {
		case <-c.PgConn().CleanupDone():
		case <-boundedCtx.Done():
		}
		_ = c.PgConn().Conn().Close()
	})
}

// setConn stores the connection, and reports whether the caller still waits.
func (r *request) setConn(c *pgx.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	return !r.callerReturned
}

// whileAwaited runs f if the caller still waits, and reports that. The caller does not
// return before f.
func (r *request) whileAwaited(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.callerReturned {
		f()
	}
	return !r.callerReturned
}

// markReturned records that the caller returns, and reports whether the request has a
// connection.
func (r *request) markReturned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callerReturned = true
	return r.conn != nil
}
