package redisscript

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A server, or a device between it and the client, may drop an idle connection. The
// library may detect that only when it sends the next request. Then the driver sends the
// request once more, within the same ctx. If the library has several idle connections,
// the next one may be dropped, too, so the driver retries once for each of them.
//
// So a claim may be under way twice. A server that has closed a connection reads no
// more from it, but a proxy may still have the first request. So if the caller releases
// the token before the end of the claim, the driver releases it once more after that end:
// see unansweredClaims.

// A resendCounter counts the attempts at a step whose connections were dead.
type resendCounter struct {
	resends       int  // the number of times that the step was sent again
	newConnection bool // the last attempt was on a new connection
}

// maxRetries bounds the attempts, because other callers may keep returning dead
// connections to the pool.
const maxRetries = 100

// mayResend reports whether a step that got this reply may be sent once more. If the
// connection was lost, mayResend also forgets the server's clock, because the next
// connection may go to another server.
func (c *resendCounter) mayResend(ctx context.Context, d *Driver, p Reply) bool {
	if p.Err == nil || !isConnectionLost(p.Err) {
		return false
	}
	d.clock.forget()
	if c.newConnection || c.resends == maxRetries || ctxErr(ctx) != nil {
		return false
	}
	c.newConnection = d.client.IdleConns == nil || d.client.IdleConns() == 0
	c.resends++
	return true
}

// resendIfLost sends a step, and repeats it if its connection was lost. The step must
// return the same answer when it is repeated.
func (d *Driver) resendIfLost(ctx context.Context, send func() Reply) Reply {
	var resends resendCounter
	p := send()
	for resends.mayResend(ctx, d, p) {
		p = send()
	}
	return p
}

// atMostOnce sends a step that cannot succeed twice, and repeats it if its connection was
// lost. If the repetition is answered "not held", the outcome of the first attempt is
// unknown, and atMostOnce returns its error.
func (d *Driver) atMostOnce(ctx context.Context, send func() Reply) Reply {
	var firstErr error
	p := d.resendIfLost(ctx, func() Reply {
		p := send()
		firstErr = cmp.Or(firstErr, p.Err)
		return p
	})
	if p.Err == nil && p.Text == "" && p.Int == 0 {
		p.Err = firstErr
	}
	return p
}

// runWithEnd sends a step with an end on the server's clock. If the server refuses the
// step because of that end, the end was computed too early, or the request came too late.
// The answer has the server's time. So runWithEnd sends the step again with a new end, at
// most maxLateTries times, and not after ctx has ended.
//
// After a lost connection, runWithEnd sends the step again if resend allows that; a nil
// resend never does. now is the current time, or a little earlier.
func (d *Driver) runWithEnd(ctx context.Context, now time.Time, name string, resend func(end time.Time) bool, send func(end int64) Reply) Reply {
	until := now.Add(driver.MaxRequest) // as driver.End, without reading the clock again
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	var resends resendCounter
	for tries, sent := 0, now; ; tries, sent = tries+1, time.Now() {
		p := send(d.clock.toServerTime(until, name))
		d.clock.learn(readTimeOfRefusal(p), sent)
		switch {
		case resends.mayResend(ctx, d, p) && resend != nil && resend(until):
			tries--
			continue
		case p.Err != nil || p.Text != "" || p.Int >= 0:
			return p
		}
		d.clock.learnRefused(-p.Int, sent, name)
		if err := ctxErr(ctx); err != nil {
			return Reply{Err: err}
		}
		if tries == maxLateTries {
			return Reply{Err: errNoTime}
		}
	}
}

// maxLateTries is the number of times that a step is sent again after the server refused
// it because of its end. Usually the second end is right, unless the clock jumps, or the
// name moves between servers.
const maxLateTries = 5

var errNoTime = errors.New("the server's clock jumps: it refused each attempt as too late")

// unansweredClaims has the tokens of claims that were sent twice, until the end of the
// first, unanswered request.
type unansweredClaims struct {
	mu       sync.Mutex            // protects released
	released map[driver.Token]bool // for each token: whether its caller has released it
}

const maxUnanswered = 1024

// mayResendClaim reports whether a claim may be sent once more, although its first
// request was not answered. If the caller releases the token before the end, the driver
// releases it again after the end.
func (d *Driver) mayResendClaim(c *driver.Claim, end time.Time) bool {
	u := &d.unanswered
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.released[c.Token]; known || len(u.released) >= maxUnanswered {
		return known
	}
	u.released[c.Token] = false
	l := driver.LeaseRef{Name: c.Name, Token: c.Token}
	time.AfterFunc(time.Until(end)+driver.MaxLead, func() {
		u.mu.Lock()
		released := u.released[l.Token]
		delete(u.released, l.Token)
		u.mu.Unlock()
		if released {
			ctx, cancel := context.WithTimeout(d.signals.life, serverTimeout)
			defer cancel()
			_ = d.Release(ctx, l)
		}
	})
	return true
}

// recordRelease records that the caller releases a token.
func (u *unansweredClaims) recordRelease(t driver.Token) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.released[t]; known {
		u.released[t] = true
	}
}
