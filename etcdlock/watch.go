package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Watch implements locktable.Watchable. It watches the key of the entry in etcd, so the
// watch costs no request when a client changes the entry. All watches of a client
// share one stream of its connection.
func (s *store) Watch(name string, f func()) (stop func()) {
	ctx, end := context.WithCancel(s.life)
	s.running.Go(func() {
		engine.Subscription{
			Run:          func(ctx context.Context, subscribed func()) { s.followName(ctx, name, subscribed, f) },
			StateChanged: func(bool) { f() }, // the client has missed changes, or may miss them from now on
			Down:         &s.watchesDown,
			FirstPause:   resubscribePause, LongestPause: resubscribePause,
		}.Keep(ctx)
	})
	return end
}

// followName reports the changes of a name until the watch fails.
func (s *store) followName(ctx context.Context, name string, subscribed, notify func()) {
	var state locktable.VisibleState
	s.watch(ctx, s.entryKey(name), func() bool { subscribed(); return true }, func(e *clientv3.Event) bool {
		if state.Changed(e.Kv.GetValue()) {
			notify()
		}
		return true
	})
}

// watch runs one watch of etcd until it fails, or one of the functions returns false. It
// calls onCreated when the server has begun to watch, and then onEvent for each event.
func (s *store) watch(ctx context.Context, key string, onCreated func() bool, onEvent func(e *clientv3.Event) bool, o ...clientv3.OpOption) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := time.AfterFunc(backgroundTimeout, cancel) // for a server that never answers
	defer timeout.Stop()
	for r := range s.client.Watch(clientv3.WithRequireLeader(ctx), key, append(o, clientv3.WithCreatedNotify())...) {
		if timeout.Stop(); r.Err() != nil || r.Created && !onCreated() {
			return
		}
		for _, e := range r.Events {
			if !onEvent(e) {
				return
			}
		}
	}
}
