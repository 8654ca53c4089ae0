package postgreslock

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
)

// A listener has one connection of its own, on which the server pushes the signals for
// this client, while one of its claims waits or holds, or while it watches a name.
//
// A signal may be lost: sent before we listened, or while the connection was down. So
// each time that listening begins, the entries of those claims are read, and what has
// happened to them is told then.
type listener struct {
	server  *server
	store   *store
	inbox   string
	deliver func(driver.Signal)

	claims *engine.Claims

	mu    sync.Mutex        // protects all below
	ear   *func(hears bool) // of who watches, nil if nobody does
	idle  time.Time         // the last time that there was a claim or an ear
	runs  bool
	hears bool // what is sent now arrives
	push  verdict

	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// verdict is whether what is sent to ourselves arrives.
type verdict int

const (
	untried verdict = iota
	works
	fails // a pooler between gives the connection that listens to others
)

const (
	linger  = 5 * time.Second // how long it goes on to listen for nobody
	silence = 7 * time.Second // after how long without a word it asks whether the server is there
	answers = 5 * time.Second // how long that may take
	arrives = 2 * time.Second // how long what was sent to ourselves may take
)

func newListener(s *store, inbox string, deliver func(driver.Signal)) *listener {
	l := &listener{server: s.server, store: s, inbox: inbox, deliver: deliver, claims: engine.NewClaims()}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

func (l *listener) close() {
	l.end()
	l.running.Wait()
}

// pushes reports whether signals arrive, as far as it is known. Without a pooler they do.
func (l *listener) pushes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.push == works || l.push == untried && !l.server.isPooled()
}

// begin listens, for a claim that waits or holds.
func (l *listener) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.server.options.NoPush {
		l.beginLocked()
	}
}

func (l *listener) beginLocked() {
	if !l.runs && l.life.Err() == nil {
		l.runs = true
		l.running.Go(l.run)
	}
}

// hear listens for who watches, until stop is called.
func (l *listener) hear(f func(hears bool)) (stop func()) {
	if l.server.options.NoPush {
		f(false)
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ear = &f
	if l.hears {
		f(true)
	}
	l.beginLocked()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ear == &f { // and nobody has come since
			l.ear, l.idle = nil, time.Now()
		}
	}
}

// turn notes whether what is sent now arrives.
func (l *listener) turn(hears bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hears = hears
	if l.ear != nil {
		(*l.ear)(hears)
	}
}

// ends notes that a claim ends now.
func (l *listener) ends() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = time.Now()
}

// over reports whether nobody has wanted to hear anything for a while. Then run ends.
func (l *listener) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.ear != nil || l.claims.Any(now) {
		l.idle = now
	} else if now.Sub(l.idle) >= linger {
		l.runs, l.hears = false, false
	}
	return !l.runs
}

// run listens until nobody wants it any more.
func (l *listener) run() {
	wanted, end := context.WithCancel(l.life)
	defer end()
	engine.Subscription{
		Run: func(_ context.Context, hears func()) {
			if l.over() || l.listen(hears) {
				end()
			}
		},
		Turned:     l.turn,
		FirstPause: 50 * time.Millisecond, LongestPause: 5 * time.Second,
	}.Keep(wanted)
}

// mayBeIdle keeps a server, from version 14 on, from ending a session that only listens.
const mayBeIdle = "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"

// listen is one connection's life. It reports whether nobody wants it any more.
func (l *listener) listen(hears func()) (over bool) {
	ctx, cancel := context.WithTimeout(l.life, answers)
	defer cancel()
	config, err := l.server.reach(ctx)
	if err != nil {
		return false
	}
	config.OnNotification, config.DefaultQueryExecMode = nil, pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.life), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if !l.server.isPooled() { // a pooler would give others a session that was set so
		if _, err := c.Exec(ctx, mayBeIdle); err != nil {
			return false
		}
	}
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel(l.inbox)}.Sanitize()); err != nil {
		return false
	}
	if !l.proves(c) {
		return l.rests()
	}
	if !l.lookAtClaims() {
		return false
	}
	hears()
	for !l.over() {
		if !l.next(c) {
			return l.over()
		}
	}
	return true
}

// proves finds out whether what is sent to ourselves arrives. It is sent through the
// pool: on the connection that listens it would come back even through a pooler.
func (l *listener) proves(c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(l.life, arrives)
	defer cancel()
	err := with(ctx, l.server, func(other *pgx.Conn) error {
		_, err := other.Exec(ctx, "SELECT pg_catalog.pg_notify($1, 'listening')", channel(l.inbox))
		return err
	})
	if err != nil {
		return l.judge(!l.server.isPooled()) // the pool may be exhausted: that says nothing of listening
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return l.judge(false)
		}
		if n.Payload == "listening" {
			return l.judge(true)
		}
		l.take(n.Payload)
	}
}

func (l *listener) judge(arrived bool) bool {
	if l.life.Err() != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.push = fails; arrived {
		l.push = works
	}
	return arrived
}

// rests is for when listening is in vain. It is tried again after a minute, for the
// pooler may be gone.
func (l *listener) rests() (over bool) {
	l.turn(false)
	l.deliver(driver.Signal{Kind: driver.SignalLook}) // whoever relied on being told asks now
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	for range 60 {
		select {
		case <-pause.C:
		case <-l.life.Done():
			return true
		}
		if l.over() {
			return true
		}
	}
	return false
}

// next waits for a signal, or asks after a long silence whether the server is still
// there. It reports whether the connection goes on.
func (l *listener) next(c *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(l.life, backoff.Early(silence))
	defer cancel()
	n, err := c.WaitForNotification(ctx)
	switch {
	case err == nil:
		l.take(n.Payload)
		return true
	case ctx.Err() == nil || l.life.Err() != nil || c.IsClosed():
		return false
	}
	ctx, cancel = context.WithTimeout(l.life, answers)
	defer cancel()
	return c.Ping(ctx) == nil
}

func (l *listener) take(payload string) {
	if s, ok := engine.DecodeSignal(payload); ok {
		l.deliver(s)
	}
}
