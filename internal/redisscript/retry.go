package redisscript

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A client may notice only when it sends something that the server, or a device on the
// way, has dropped an idle connection. Then the driver tries once more, on a new
// connection and within the same ctx. A client that keeps several idle connections may
// take another one that was dropped, too, so the driver tries once more for each of them.
//
// An attempt to acquire may then be under way twice, and its caller does not know. A
// server that has closed a connection reads no more of it, but a proxy on the way may
// still have the request. So a token that is released before the end of its claim is
// released once more after that end: see unanswered.

// A retry counts the attempts at a step whose connection turned out to be dead.
type retry struct {
	sent          int  // how often the step was sent again
	newConnection bool // the last attempt was on a new connection
}

// maxRetries bounds the attempts while other callers keep returning connections.
const maxRetries = 100

// mayResend reports whether a step that got this reply may be sent once more. If its
// connection was lost, mayResend also forgets the server's clock, because the next
// connection may lead to another server.
func (a *retry) mayResend(ctx context.Context, d *Driver, p Reply) bool {
	if p.Err == nil || !lost(p.Err) {
		return false
	}
	d.clock.forget()
	if a.newConnection || a.sent == maxRetries || ended(ctx) != nil {
		return false
	}
	a.newConnection = d.client.Idle == nil || d.client.Idle() == 0
	a.sent++
	return true
}

// resendIfLost sends a step that gives the same answer when it is repeated, and repeats
// it if its connection was lost.
func (d *Driver) resendIfLost(ctx context.Context, send func() Reply) Reply {
	var a retry
	p := send()
	for a.mayResend(ctx, d, p) {
		p = send()
	}
	return p
}

// atMostOnce sends a step whose repetition answers "not held". After that answer it
// returns the error of the first attempt, whose outcome is unknown.
func (d *Driver) atMostOnce(ctx context.Context, send func() Reply) Reply {
	var a retry
	first := send()
	p := first
	for a.mayResend(ctx, d, p) {
		p = send()
	}
	if a.sent > 0 && p.Err == nil && p.Text == "" && p.Int == 0 {
		return first
	}
	return p
}

// runWithEnd sends a step with an end on the server's clock. If the server refuses it
// because of its end, that end was too early, or the request came too late. The answer
// has the server's time, so runWithEnd sends the step again with a new end, until ctx
// ends.
//
// If c, the claim, is nil, runWithEnd does not send again after a lost connection. now is
// the current time, or a little earlier.
func (d *Driver) runWithEnd(ctx context.Context, now time.Time, name string, c *driver.Claim, send func(end int64) Reply) Reply {
	until := now.Add(driver.MaxRequest) // as driver.End, without another look at the clock
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	var attempts retry
	for tries, sent := 0, now; ; tries, sent = tries+1, time.Now() {
		p := send(d.clock.end(until, name))
		d.clock.learn(readTimeOfRefusal(p), sent)
		switch {
		case attempts.mayResend(ctx, d, p) && c != nil && d.unanswered.add(c, until):
			tries--
			continue
		case p.Err != nil || p.Text != "" || p.Int >= 0:
			return p
		}
		d.clock.learnRefused(-p.Int, sent, name)
		if err := ended(ctx); err != nil {
			return Reply{Err: err}
		}
		if tries == maxLateTries {
			return Reply{Err: errNoTime}
		}
	}
}

// maxLateTries is the number of times that a step is sent again to a server that finds it
// late although its ctx is not over. The second end is right, unless the clock jumps, or
// the name moves between servers.
const maxLateTries = 5

var errNoTime = errors.New("the server's clock jumps: it says each time that the request has come too late")

// unanswered are the claims that were sent twice, until the end of the first request,
// which was not answered.
type unanswered struct {
	release func(driver.LeaseRef)

	everUsed atomic.Bool           // released has had a token
	mu       sync.Mutex            // protects released
	released map[driver.Token]bool // for each token: whether its caller has released it
}

const maxUnanswered = 1024

// add reports whether a claim may be sent once more, although its first request was not
// answered. If the caller releases the token before the end, the driver releases it again
// after the end.
func (u *unanswered) add(c *driver.Claim, end time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.released[c.Token]; known || len(u.released) >= maxUnanswered {
		return known
	}
	if u.released == nil {
		u.released = map[driver.Token]bool{}
	}
	u.released[c.Token] = false
	u.everUsed.Store(true)
	l := driver.LeaseRef{Name: c.Name, Token: c.Token}
	time.AfterFunc(time.Until(end)+driver.MaxLead, func() { u.remove(l) })
	return true
}

func (u *unanswered) remove(l driver.LeaseRef) {
	u.mu.Lock()
	released := u.released[l.Token]
	delete(u.released, l.Token)
	u.mu.Unlock()
	if released {
		u.release(l)
	}
}

// noteRelease notes that the caller releases a token.
func (u *unanswered) noteRelease(t driver.Token) {
	if !u.everUsed.Load() {
		return // the usual case
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.released[t]; known {
		u.released[t] = true
	}
}
