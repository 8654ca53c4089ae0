package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/locktable"
)

// A watch of a name is one of etcd's, on the key of its entry: nobody who changes it has
// to know. All of a client share one stream of its connection.
type watch struct {
	*store
	name string
	tell func()
	deaf bool // it is one of store.deaf
}

// Watch implements locktable.Watchable.
func (s *store) Watch(name string, f func()) (stop func()) {
	ctx, end := context.WithCancel(s.life)
	w := &watch{store: s, name: name, tell: f}
	s.background(func() { w.run(ctx) })
	return end
}

// run watches until ctx ends, and anew whenever etcd does not go on.
func (w *watch) run(ctx context.Context) {
	defer w.hears(true)
	for ctx.Err() == nil {
		w.follow(ctx)
		if ctx.Err() == nil && w.hears(false) {
			w.tell() // whoever relied on being told asks now
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// follow is one watch of etcd's, as long as that goes well.
func (w *watch) follow(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(askTimeout, cancel) // a server that never answers is none
	defer late.Stop()
	var seen locktable.Glimpse
	for r := range w.client.Watch(clientv3.WithRequireLeader(ctx), w.entryKey(w.name), clientv3.WithCreatedNotify()) {
		if r.Err() != nil || r.Canceled {
			return
		}
		if r.Created {
			late.Stop()
			w.hears(true)
			w.tell() // what was changed before was not heard
		}
		for _, e := range r.Events {
			if seen.News(e.Kv.GetValue()) {
				w.tell()
			}
		}
	}
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
