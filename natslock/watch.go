package natslock

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// A watch of a name listens to its stamps, which the leader of the bucket sends in any
// case (see stamps): nobody who changes the name has to know. What was stored is read
// then, to tell renewals from news. In a bucket that does not send them, for others have
// made it, nothing is heard.
type watch struct {
	*store
	name    string
	tell    func()
	seen    locktable.Glimpse
	changed chan struct{} // holds one: something has been stored
	last    atomic.Uint64 // the highest sequence of that
}

// Watch implements locktable.Watchable.
func (s *store) Watch(name string, f func()) (stop func()) { return s.watchers.Watch(name, f) }

func (s *store) followName(name string, f func()) (stop func()) {
	ctx, end := context.WithCancel(s.life)
	w := &watch{store: s, name: name, tell: f, changed: make(chan struct{}, 1)}
	s.push.loops.Go(func() {
		engine.Subscription{
			Run:        w.listen,
			Turned:     func(bool) { f() }, // a change was not heard, or will not be
			Deaf:       &s.deaf,
			FirstPause: 100 * time.Millisecond, LongestPause: 5 * time.Second,
		}.Keep(ctx)
	})
	return end
}

// watchRequestTimeout is for an answer to what a watch asks.
const watchRequestTimeout = 5 * time.Second

// listen listens for as long as that goes well.
func (w *watch) listen(ctx context.Context, hears func()) {
	brief, cancel := context.WithTimeout(ctx, watchRequestTimeout)
	defer cancel()
	if w.ready(brief) != nil || !w.sendsStamps() {
		return
	}
	subject, before := w.stampPrefix()+keyOf(w.name), w.nc.LastError()
	sub, err := w.nc.Subscribe(subject, w.hear)
	if err != nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection is closed already, at worst
	if w.nc.FlushWithContext(brief) != nil || errors.Is(w.refusal(subject, before), nats.ErrPermissionViolation) {
		return
	}
	hears()
	for w.sendsStamps() {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if w.look(ctx) {
			w.tell()
		}
	}
}

// hear is called for each message that was stored.
func (w *watch) hear(m *nats.Msg) {
	if n, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
		w.last.Store(n)
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// look reads what is stored, and reports whether there is news. If it cannot be read
// there may be.
func (w *watch) look(ctx context.Context) bool {
	brief, cancel := context.WithTimeout(ctx, watchRequestTimeout)
	defer cancel()
	at := time.Now()
	m, err := w.from(brief, keyOf(w.name), w.last.Load())
	if err != nil || m == nil {
		return true
	}
	is, err := m.stored(at)
	return err != nil || w.seen.News(is.Value)
}

// sendsStamps reports whether the leader sends the stamps of the bucket, as far as it is
// known.
func (s *store) sendsStamps() bool {
	c := s.bucket.config.Load()
	return c == nil || c.RePublish != nil && c.RePublish.Destination == s.stampPrefix()+">"
}

// pushesChanges reports whether changes are told, as far as it is known.
func (s *store) pushesChanges() bool {
	return s.deaf.Load() == 0 && s.sendsStamps() && s.nc.IsConnected()
}
