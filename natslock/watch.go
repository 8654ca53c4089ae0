package natslock

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Watch implements locktable.Watchable. A watch receives the stamps of its name, which
// the leader of the bucket sends for each write (see stampPrefix). So a client that
// changes the name sends no further message. In a bucket that another tool has created,
// watches receive no stamps.
func (s *store) Watch(name string, f func()) (stop func()) {
	ctx, end := context.WithCancel(s.life)
	s.push.loops.Go(func() {
		engine.Subscription{
			Run:          func(ctx context.Context, subscribed func()) { s.followName(ctx, name, subscribed, f) },
			StateChanged: func(bool) { f() }, // the watch has missed changes, or may miss them from now on
			Down:         &s.watchesDown,
			FirstPause:   100 * time.Millisecond, LongestPause: 5 * time.Second,
		}.Keep(ctx)
	})
	return end
}

// watchRequestTimeout is the time limit of a request of a watch.
const watchRequestTimeout = 5 * time.Second

// followName reports the changes of a name until the subscription fails. After a stamp,
// it reads the value, to distinguish changes from renewals.
func (s *store) followName(ctx context.Context, name string, subscribed, notify func()) {
	brief, cancel := context.WithTimeout(ctx, watchRequestTimeout)
	defer cancel()
	if s.ready(brief) != nil || !s.maySendStamps() {
		return
	}
	var last atomic.Uint64           // the sequence of the last stored message
	stored := make(chan struct{}, 1) // has a value after a message was stored
	subject, before := s.stampPrefix()+keyOf(name), s.nc.LastError()
	sub, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
		if n, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
			last.Store(n)
		}
		select {
		case stored <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // at worst the connection is closed already
	if s.nc.FlushWithContext(brief) != nil || s.refusal(subject, before) != nil {
		return
	}
	subscribed()
	for state := (locktable.VisibleState{}); s.maySendStamps(); {
		select {
		case <-ctx.Done():
			return
		case <-stored:
		}
		if s.hasChanged(ctx, name, last.Load(), &state) {
			notify()
		}
	}
}

// hasChanged reads the value, and reports whether it has a visible change. It also
// returns true if it cannot read the value.
func (s *store) hasChanged(ctx context.Context, name string, sequence uint64, state *locktable.VisibleState) bool {
	brief, cancel := context.WithTimeout(ctx, watchRequestTimeout)
	defer cancel()
	askedAt := time.Now()
	m, err := s.readLast(brief, keyOf(name), sequence)
	if err != nil || m == nil {
		return true
	}
	stored, err := m.stored(askedAt)
	return err != nil || state.Changed(stored.Value)
}

// maySendStamps reports whether the leader sends the bucket's stamps according to its
// last known configuration, or its configuration is unknown.
func (s *store) maySendStamps() bool {
	c := s.bucket.config.Load()
	return c == nil || s.sendsStamps(c)
}
