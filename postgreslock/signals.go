package postgreslock

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// A listener receives the signals for this client, on a connection of its own. The
// connection is open while one of the client's claims waits or holds, or while the client
// watches a name.
//
// A signal is lost if it is sent before the client listens, or while the connection is
// down. So each time that listening begins, the client reads the entries of its claims,
// and delivers the missed signals.
type listener struct {
	store  *store
	claims *engine.Claims

	// pushWorks reports whether notifications that the client sends to itself arrive. It
	// is nil before the first test, and false if a pooler shares the listening session
	// with other clients.
	pushWorks atomic.Pointer[bool]

	mu            sync.Mutex     // protects the next four fields
	setWatchState *func(up bool) // called when signals begin or cease to arrive; nil without a watch
	unusedSince   time.Time      // when endIfUnused first found no claim and no watch; zero if there is one
	active        bool           // run has been started, and has not ended
	up            bool           // signals arrive now

	running sync.WaitGroup
}

const (
	unusedTimeout  = 5 * time.Second // the time for which a client still listens after its last claim or watch
	pingAfter      = 7 * time.Second // the time without a signal after which it pings the server
	requestTimeout = 5 * time.Second // the time limit of a listener's request
	notifyTimeout  = 2 * time.Second // the time limit of the wait for a notification to itself
)

// pushes reports whether signals arrive. Until the listener has tested that, pushes
// returns true if there is no pooler.
func (l *listener) pushes() bool {
	works := l.pushWorks.Load()
	return works != nil && *works || works == nil && !l.store.pooled.Load()
}

// awaitPushTest listens for a while, even without a claim, and waits until the listener
// has tested whether signals arrive, ctx ends, or twice notifyTimeout has passed.
func (l *listener) awaitPushTest(ctx context.Context) {
	for began := time.Now(); l.pushWorks.Load() == nil && time.Since(began) < 2*notifyTimeout; {
		l.listenForClaim()
		if backoff.Wait(ctx, 10*time.Millisecond) != nil {
			return
		}
	}
}

// listenForClaim starts to listen, for a claim that waits or holds.
func (l *listener) listenForClaim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.store.options.NoPush {
		l.startLocked()
	}
}

// startLocked starts run, unless it is active. l.mu is locked.
func (l *listener) startLocked() {
	l.unusedSince = time.Time{}
	if !l.active && l.store.closing.Err() == nil {
		l.active = true
		l.running.Go(l.run)
	}
}

// listenForWatch starts to listen for a watch, until stop is called. It calls f each time
// that signals begin to arrive (true) or cease to (false).
func (l *listener) listenForWatch(f func(up bool)) (stop func()) {
	if l.store.options.NoPush {
		f(false)
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setWatchState = &f
	if l.up {
		f(true)
	}
	l.startLocked()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.setWatchState == &f { // if no other watch has replaced it
			l.setWatchState = nil
		}
	}
}

// setState records whether signals arrive now, and notifies the watch.
func (l *listener) setState(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = up
	if l.setWatchState != nil {
		(*l.setWatchState)(up)
	}
}

// endIfUnused ends run, and returns true, if there was no claim and no watch for
// unusedTimeout.
func (l *listener) endIfUnused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := time.Now(); {
	case l.setWatchState != nil || l.claims.Any(now):
		l.unusedSince = time.Time{}
	case l.unusedSince.IsZero():
		l.unusedSince = now
	case now.Sub(l.unusedSince) >= unusedTimeout:
		l.active, l.up = false, false
	}
	return !l.active
}

// run listens until endIfUnused returns true.
func (l *listener) run() {
	ctx, cancel := context.WithCancel(l.store.closing)
	defer cancel()
	engine.Subscription{
		Run: func(_ context.Context, subscribed func()) {
			if l.endIfUnused() || l.listen(subscribed) {
				cancel()
			}
		},
		StateChanged: l.setState,
		FirstPause:   50 * time.Millisecond, LongestPause: 5 * time.Second,
	}.Keep(ctx)
}

// noIdleTimeout keeps a server, version 14 or later, from ending a session that only
// listens.
const noIdleTimeout = "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"

// listen opens one connection and listens on it. It returns true if no claim and no watch
// needs it any more, and false if run has to call it again.
func (l *listener) listen(subscribed func()) (done bool) {
	ctx, cancel := context.WithTimeout(l.store.closing, requestTimeout)
	defer cancel()
	config, err := l.store.connConfig(ctx)
	if err != nil {
		return false
	}
	if err := l.store.beforeConnect(ctx, config); err != nil {
		return false
	}
	config.OnNotification, config.DefaultQueryExecMode = nil, pgx.QueryExecModeExec
	disableCancelRequests(config)
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.store.closing), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	statement := "LISTEN " + pgx.Identifier{channel(l.store.inbox)}.Sanitize()
	if !l.store.pooled.Load() { // behind a pooler, other clients would get the setting
		statement += "; " + noIdleTimeout
	}
	if _, err := c.Exec(ctx, statement); err != nil {
		return false
	}
	if !l.testPush(c) {
		return l.pauseAfterFailedPush()
	}
	if !l.pollClaims() {
		return false
	}
	subscribed()
	for !l.endIfUnused() {
		if !l.receiveOrPing(c) {
			return l.endIfUnused()
		}
	}
	return true
}

// testPush tests whether a notification to this client arrives. It sends one through the
// pool, because the listening connection receives its own notifications even behind a
// pooler.
func (l *listener) testPush(c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(l.store.closing, notifyTimeout)
	defer cancel()
	err := withConn(ctx, l.store, func(other *pgx.Conn) error {
		_, err := other.Exec(ctx, "SELECT pg_catalog.pg_notify($1, 'listening')", channel(l.store.inbox))
		return err
	})
	if err != nil {
		return l.setPushWorks(!l.store.pooled.Load()) // an error of the pool does not mean that notifications fail
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return l.setPushWorks(false)
		}
		if n.Payload == "listening" {
			return l.setPushWorks(true)
		}
		l.deliverPayload(n.Payload)
	}
}

func (l *listener) setPushWorks(works bool) bool {
	if l.store.closing.Err() != nil {
		return false
	}
	l.pushWorks.Store(&works)
	return works
}

// pauseAfterFailedPush waits for a minute after notifications did not arrive. Then the
// listener tests again, because the pooler may be gone.
func (l *listener) pauseAfterFailedPush() (done bool) {
	l.setState(false)
	l.store.deliver(driver.Signal{Kind: driver.SignalRetry}) // claims without signals read their entries
	for range 60 {
		if backoff.Wait(l.store.closing, time.Second) != nil || l.endIfUnused() {
			return true
		}
	}
	return false
}

// receiveOrPing waits for a signal, or pings the server after a long silence. It reports
// whether the connection still works.
func (l *listener) receiveOrPing(c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(l.store.closing, backoff.JitterDown(pingAfter))
	defer cancel()
	n, err := c.WaitForNotification(ctx)
	switch {
	case err == nil:
		l.deliverPayload(n.Payload)
		return true
	case ctx.Err() == nil || l.store.closing.Err() != nil || c.IsClosed():
		return false
	}
	ctx, cancel = context.WithTimeout(l.store.closing, requestTimeout)
	defer cancel()
	return c.Ping(ctx) == nil
}

func (l *listener) deliverPayload(payload string) {
	if s, ok := engine.DecodeSignal(payload); ok {
		l.store.deliver(s)
	}
}

// notifications returns SQL calls that send signals to the channels of their inboxes. The
// calls are further columns of a statement. notifications appends their arguments to
// args. During a notifyPause there are no calls.
func (s *store) notifications(signals []locktable.Signal, args []any) (calls string, _ []any) {
	if s.notifyPause.isActive() {
		return "", args
	}
	for _, to := range signals {
		calls += ", pg_catalog.pg_notify(" + placeholder(len(args)+1) + ", " + placeholder(len(args)+2) + ")"
		args = append(args, channel(to.Inbox), engine.EncodeSignal(to.Signal))
	}
	return calls, args
}

// channel returns the name of the channel on which the client of an inbox listens.
func channel(inbox string) string { return "pawl:" + inbox }

// A notifyPause is a pause in sending notifications. It begins when the server refuses a
// notification: its queue is full, because a listener in some database hangs, or the user
// lacks the right. Grants and releases then succeed without signals, which are only
// hints. During the pause this client sends no notifications, and waiters poll the table.
type notifyPause struct {
	until atomic.Pointer[time.Time]
}

// notifyPauseTime is the duration of a notifyPause.
const notifyPauseTime = 5 * time.Second

func (p *notifyPause) isActive() bool {
	until := p.until.Load()
	return until != nil && time.Now().Before(*until)
}

// beginIfRefused reports whether a step failed only because of its notifications, and
// begins the pause if so. The step changed nothing, and the caller repeats it. The result
// is also true if the pause had already begun, because the step may have been sent
// before.
func (p *notifyPause) beginIfRefused(err error) bool {
	state := sqlState(err)
	full := state == "54000" && strings.Contains(err.Error(), "NOTIFY")
	forbidden := state == "42501" && strings.Contains(err.Error(), "pg_notify")
	if !full && !forbidden {
		return false
	}
	until := time.Now().Add(notifyPauseTime)
	p.until.Store(&until)
	return true
}
