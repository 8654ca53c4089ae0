package postgreslock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A request is one use of a connection. If the caller's ctx ends before the answer
// arrives, pgx closes the connection, and the next request needs a new one. On a slow
// server a new connection costs more than the request, and makes the server even slower.
// So if the server was slow lately, a request runs in a goroutine: its caller returns
// when ctx ends, and the goroutine waits a little longer. A request that waits long for a
// locked row also runs in a goroutine, on any server. Other requests to a quick server do
// not, because passing an answer between goroutines may take 0.1 ms.
type request struct {
	ctx context.Context // never ends if the request has a goroutine of its own

	mu    sync.Mutex // protects the fields below
	conn  *pgx.Conn  // nil until the request has one
	left  bool       // the caller has returned
	cut   bool       // await closed the connection, and pgx may not know
	ended bool       // the connection was returned to the pool
}

const (
	slow          = 100 * time.Millisecond // the time of a request from which on the server counts as slow
	slowFor       = time.Minute            // the time after a slow request for which the server counts as slow
	answerTimeout = 2 * time.Second        // how long a request without a caller waits for its answer
)

// request runs f with a connection. f may still run after request has returned the error
// of ctx. So f must use the caller's variables only in whileAwaited.
func (s *store) request(ctx context.Context, f func(r *request) error) error {
	began := time.Now()
	if last := s.lastSlow.Load(); last == nil || began.Sub(*last) > slowFor {
		defer s.recordTime(began)
		return s.run(ctx, &request{ctx: ctx}, f)
	}
	return s.requestInBackground(ctx, answerTimeout, func() { s.recordTime(began) }, f)
}

// requestInBackground runs a request in a goroutine of its own, on any server. After its
// caller has returned, the request waits for its answer for the time wait. At its end,
// the goroutine calls over.
func (s *store) requestInBackground(ctx context.Context, wait time.Duration, over func(), f func(r *request) error) error {
	r := &request{ctx: context.WithoutCancel(ctx)}
	connecting, stop := context.WithCancel(r.ctx)
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer stop()
		defer over()
		err = s.run(connecting, r, f)
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
	connected := r.leave()
	if !connected {
		wait = answerTimeout // the request waits for a connection, not for a row
	}
	if others := s.awaitAnswer(r, wait, stop, done); !connected && others == 0 && s.exhausted() {
		return exhaustedError{ctx.Err()}
	}
	return ctx.Err()
}

// awaitAnswer lets a request without a caller wait for its answer, and returns the number
// of other such requests. If there are too many, this request does not wait, because the
// pool has to serve callers, too. For requests that wait for a locked row, longWaits is
// the limit.
func (s *store) awaitAnswer(r *request, wait time.Duration, stop func(), done <-chan struct{}) (others int) {
	others = len(s.unawaited)
	end := func() {}
	if wait == answerTimeout {
		select {
		case s.unawaited <- struct{}{}:
			end = func() { <-s.unawaited }
		default:
			wait = 0
		}
	}
	s.running.Go(func() {
		defer end()
		r.await(s.closing, wait, stop, done)
	})
	return others
}

// recordTime records that the server is slow if a request took long.
func (s *store) recordTime(began time.Time) {
	if now := time.Now(); now.Sub(began) > slow {
		s.lastSlow.Store(&now)
	}
}

func (s *store) run(connecting context.Context, r *request, f func(r *request) error) error {
	c, free, err := s.connect(connecting)
	if err != nil {
		if connecting.Err() != nil && s.exhausted() {
			err = exhaustedError{err}
		}
		return err
	}
	if !r.begin(c) {
		free()
		return nil
	}
	defer s.returnConn(r, free) // even if f panics
	err = f(r)
	s.ended(r.ctx, c, err)
	if c.IsClosed() {
		s.closeSocket(c)
	}
	return err
}

// closeSocket closes the socket of a connection that pgx has closed because its ctx
// ended. pgx waits up to 15 s for the server to close it, too, and meanwhile the pool
// does not replace it.
func (s *store) closeSocket(c *pgx.Conn) {
	s.running.Go(func() {
		late := time.NewTimer(answerTimeout)
		defer late.Stop()
		select {
		case <-c.PgConn().CleanupDone():
		case <-late.C:
		case <-s.closing.Done():
		}
		_ = c.PgConn().Conn().Close()
	})
}

// returnConn returns the connection to the pool before the caller gets its answer, so
// that the caller's next request can use it. Only a rollback runs in the background.
func (s *store) returnConn(r *request, free func()) {
	if r.conn.IsClosed() || r.conn.PgConn().TxStatus() == 'I' {
		r.end(free)
		return
	}
	s.running.Go(func() {
		undo(r.conn)
		r.end(free)
	})
}

// begin stores the connection, and reports whether the caller still waits.
func (r *request) begin(c *pgx.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	r.ended = r.left
	return !r.left
}

// errUnawaited means that no caller waits for the answer to a request any more.
var errUnawaited = errors.New("the caller has gone")

// whileAwaited runs f if the caller still waits. The caller does not return before f.
func (r *request) whileAwaited(f func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left {
		return errUnawaited
	}
	f()
	return nil
}

// leave records that the caller returns, and reports whether the request has a
// connection.
func (r *request) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	return r.conn != nil
}

// await waits for the answer to a request without a caller. If the answer takes too long,
// await stops the wait for a connection, or closes the connection.
func (r *request) await(closing context.Context, wait time.Duration, stop func(), done <-chan struct{}) {
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-done:
		return
	case <-late.C:
	case <-closing.Done():
	}
	r.mu.Lock()
	if r.cut = r.conn != nil && !r.ended; r.cut {
		_ = r.conn.PgConn().Conn().Close()
	}
	r.mu.Unlock()
	stop()
	<-done
}

func (r *request) end(free func()) {
	r.mu.Lock()
	r.ended = true
	cut := r.cut
	r.mu.Unlock()
	if cut {
		_ = r.conn.Close(r.ctx) // so that the pool does not reuse it
	}
	free()
}
