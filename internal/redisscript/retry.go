package redisscript

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A connection that was idle may turn out to be dead only when something is sent on it:
// the server was restarted, or closed it, or something on the way did. That is worth one
// more try, on a new connection and within the same ctx. A client that keeps several idle
// may take the next one instead, which was dropped with the first: each of them is worth
// one more.
//
// An attempt to acquire may then be under way twice, and whoever made it does not know. A
// server that has closed a connection reads no more of it, but something on the way may
// still have it. So a token that is released before its end is released once more after
// it: see strays.

// A retry is what is known of a step that is sent again because its connection turned out
// to be dead.
type retry struct {
	sent  int  // how often it was
	fresh bool // the last time on a new connection
}

// mostRetries is for when others give their connections back all the time.
const mostRetries = 100

// may reports whether a step that was answered so may be sent once more, and forgets what
// another server may not have said.
func (a *retry) may(ctx context.Context, d *Driver, p Reply) bool {
	if p.Err == nil || !lost(p.Err) {
		return false
	}
	d.clock.forget()
	if a.fresh || a.sent == mostRetries || ended(ctx) != nil {
		return false
	}
	a.fresh = d.pool == nil || d.pool.Idle() == 0
	a.sent++
	return true
}

// twice sends a step that says the same when it is repeated.
func (d *Driver) twice(ctx context.Context, send func() Reply) Reply {
	var a retry
	p := send()
	for a.may(ctx, d, p) {
		p = send()
	}
	return p
}

// atMostOnce sends a step that says "not held" when it is repeated. Then what it did the
// first time is not known.
func (d *Driver) atMostOnce(ctx context.Context, send func() Reply) Reply {
	var a retry
	first := send()
	p := first
	for a.may(ctx, d, p) {
		p = send()
	}
	if a.sent > 0 && p.Err == nil && p.Text == "" && p.Int == 0 {
		return first
	}
	return p
}

// A timely step is sent with an end on the server's clock. What the server refuses
// because of that was sent with one that was too early, or has come too late. Either way
// the time is known now, and it is sent again, until ctx is over.
//
// c is the claim; without one it is not sent again when the connection was lost. It is
// sent now, or a little later.
func (d *Driver) timely(ctx context.Context, now time.Time, name string, c *driver.Claim, send func(end int64) Reply) Reply {
	until := driver.EndFrom(ctx, now)
	var again retry
	for tries, sent := 0, now; ; tries, sent = tries+1, time.Now() {
		p := send(d.clock.end(until, name))
		if r := (reader{rest: p.Text}); r.take(1) == "h" {
			d.clock.learn(int64(r.instant()), sent)
		}
		switch {
		case again.may(ctx, d, p) && c != nil && d.strays.add(c, until):
			tries--
			continue
		case p.Err != nil || p.Text != "" || p.Int >= 0:
			return p
		}
		d.clock.late(-p.Int, sent, name)
		if err := ended(ctx); err != nil {
			return Reply{Err: err}
		}
		if tries == mostTries {
			return Reply{Err: errNoTime}
		}
	}
}

// mostTries is how often a step is sent to a server that finds it late, though its ctx is
// not over: the second time the end is right, unless the clock jumps, or the name moves
// between servers.
const mostTries = 5

var errNoTime = errors.New("the server's clock jumps: it says each time that the request has come too late")

// strays are the tokens of claims that were sent twice, until the end of the first.
type strays struct {
	release func(driver.LeaseRef)

	some atomic.Bool           // all has had some
	mu   sync.Mutex            // protects all
	all  map[driver.Token]bool // whether it was released meanwhile
}

const mostStrays = 1024

// add reports whether a claim may be sent once more, although its first request was not
// answered. If its token is released meanwhile, it is released once more after the end.
func (s *strays) add(c *driver.Claim, end time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.all[c.Token]; known || len(s.all) >= mostStrays {
		return known
	}
	if s.all == nil {
		s.all = map[driver.Token]bool{}
	}
	s.all[c.Token] = false
	s.some.Store(true)
	l := driver.LeaseRef{Name: c.Name, Token: c.Token}
	time.AfterFunc(time.Until(end)+driver.MaxLead, func() { s.end(l) })
	return true
}

func (s *strays) end(l driver.LeaseRef) {
	s.mu.Lock()
	released := s.all[l.Token]
	delete(s.all, l.Token)
	s.mu.Unlock()
	if released {
		s.release(l)
	}
}

func (s *strays) releasing(t driver.Token) {
	if !s.some.Load() {
		return // mostly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.all[t]; known {
		s.all[t] = true
	}
}
