package natslock

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/pause"
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
	deaf    bool          // it is one of store.deaf
}

// Watch implements locktable.Watchable.
func (s *store) Watch(name string, f func()) (stop func()) { return s.watchers.Watch(name, f) }

func (s *store) followName(name string, f func()) (stop func()) {
	ctx, end := context.WithCancel(s.life)
	w := &watch{store: s, name: name, tell: f, changed: make(chan struct{}, 1)}
	s.push.loops.Go(func() { w.run(ctx) })
	return end
}

const (
	listenAgain    = 100 * time.Millisecond // after it could not be listened
	listenAgainMax = 5 * time.Second
	listenFor      = 5 * time.Second // an answer to what is asked for it
)

// run listens until ctx ends, and tries again where it cannot.
func (w *watch) run(ctx context.Context) {
	defer w.hears(true)
	for n := 0; ctx.Err() == nil; n++ {
		if w.listen(ctx) {
			n = 0
		}
		if ctx.Err() == nil && w.hears(false) {
			w.tell() // whoever relied on being told asks now
		}
		_ = pause.For(ctx, backoff.Around(backoff.Doubled(listenAgain, n, listenAgainMax)))
	}
}

// listen listens for as long as that goes well, and reports whether it ever did.
func (w *watch) listen(ctx context.Context) (began bool) {
	brief, cancel := context.WithTimeout(ctx, listenFor)
	defer cancel()
	if w.ready(brief) != nil || !w.sendsStamps() {
		return false
	}
	subject, before := w.stampPrefix()+keyOf(w.name), w.nc.LastError()
	sub, err := w.nc.Subscribe(subject, w.hear)
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection is closed already, at worst
	if w.nc.FlushWithContext(brief) != nil || errors.Is(w.refusal(subject, before), nats.ErrPermissionViolation) {
		return false
	}
	w.hears(true)
	w.tell() // what was changed before was not heard
	for {
		select {
		case <-ctx.Done():
			return true
		case <-w.changed:
		}
		if w.look(ctx) {
			w.tell()
		}
		if !w.sendsStamps() {
			return true
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
	brief, cancel := context.WithTimeout(ctx, listenFor)
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

// hears notes whether changes are heard now, and reports whether that is new.
func (w *watch) hears(can bool) (turned bool) {
	if can != w.deaf {
		return false
	}
	if w.deaf = !can; w.deaf {
		w.store.deaf.Add(1)
	} else {
		w.store.deaf.Add(-1)
	}
	return true
}

// pushesChanges reports whether changes are told, as far as it is known.
func (s *store) pushesChanges() bool {
	return s.deaf.Load() == 0 && s.sendsStamps() && s.nc.IsConnected()
}
