package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

// Watch implements locktable.Watchable. It watches the key of the entry in etcd, so a
// client that changes the entry sends nothing else for the watch. All watches of a client
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

// followName runs one watch of etcd until the watch fails.
func (s *store) followName(ctx context.Context, name string, subscribed, notify func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(backgroundTimeout, cancel) // for a server that never answers
	defer late.Stop()
	var state locktable.VisibleState
	for r := range s.client.Watch(clientv3.WithRequireLeader(ctx), s.entryKey(name), clientv3.WithCreatedNotify()) {
		if r.Err() != nil || r.Canceled {
			return
		}
		if r.Created {
			late.Stop()
			subscribed()
		}
		for _, e := range r.Events {
			if state.Changed(e.Kv.GetValue()) {
				notify()
			}
		}
	}
}
