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

// A watch of a name receives the stamps of the name, which the leader of the bucket sends
// for each write (see stampPrefix). So a client that changes the name sends nothing else
// for the watch. After a stamp, the watch reads the value, to distinguish changes from
// renewals. In a bucket that another tool has created, watches receive no stamps.
type watch struct {
	*store
	name    string
	notify  func()
	state   locktable.VisibleState
	changed chan struct{} // has a value after a message was stored
	last    atomic.Uint64 // the highest sequence of the stored messages
}

// Watch implements locktable.Watchable.
func (s *store) Watch(name string, f func()) (stop func()) {
	ctx, end := context.WithCancel(s.life)
	w := &watch{store: s, name: name, notify: f, changed: make(chan struct{}, 1)}
	s.push.loops.Go(func() {
		engine.Subscription{
			Run:          w.listen,
			StateChanged: func(bool) { f() }, // the watch has missed changes, or may miss them from now on
			Down:         &s.watchesDown,
			FirstPause:   100 * time.Millisecond, LongestPause: 5 * time.Second,
		}.Keep(ctx)
	})
	return end
}

// watchRequestTimeout is the time limit of a request of a watch.
const watchRequestTimeout = 5 * time.Second

// listen receives stamps until the subscription fails.
func (w *watch) listen(ctx context.Context, subscribed func()) {
	brief, cancel := context.WithTimeout(ctx, watchRequestTimeout)
	defer cancel()
	if w.ready(brief) != nil || !w.mayPush() {
		return
	}
	subject, before := w.stampPrefix()+keyOf(w.name), w.nc.LastError()
	sub, err := w.nc.Subscribe(subject, w.receiveStamp)
	if err != nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // at worst the connection is closed already
	if w.nc.FlushWithContext(brief) != nil || w.refusal(subject, before) != nil {
		return
	}
	subscribed()
	for w.mayPush() {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if w.hasNews(ctx) {
			w.notify()
		}
	}
}

// receiveStamp receives the stamp of each stored message.
func (w *watch) receiveStamp(m *nats.Msg) {
	if n, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
		w.last.Store(n)
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// hasNews reads the value, and reports whether it has a visible change. It also returns
// true if it cannot read the value.
func (w *watch) hasNews(ctx context.Context) bool {
	brief, cancel := context.WithTimeout(ctx, watchRequestTimeout)
	defer cancel()
	at := time.Now()
	m, err := w.from(brief, keyOf(w.name), w.last.Load())
	if err != nil || m == nil {
		return true
	}
	is, err := m.stored(at)
	return err != nil || w.state.Changed(is.Value)
}

// mayPush reports whether the leader sends the bucket's stamps, according to its last
// known configuration.
func (s *store) mayPush() bool {
	c := s.bucket.config.Load()
	return c == nil || s.sendsStamps(c)
}
