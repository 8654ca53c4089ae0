package memlock

import (
	"sync"
	"sync/atomic"
)

// watchers are who wants to know when a name changes.
type watchers struct {
	any atomic.Int32 // how many there are, so that a step without any costs nothing

	mu sync.Mutex // protects what follows
	of map[string]map[*watcher]struct{}
}

type watcher struct{ tell func() }

// Watch implements locktable.Watchable.
func (m *Memory) Watch(name string, f func()) (stop func()) {
	w, x := &m.watchers, &watcher{f}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]map[*watcher]struct{}{}
	}
	if w.of[name] == nil {
		w.of[name] = map[*watcher]struct{}{}
	}
	w.of[name][x] = struct{}{}
	w.any.Add(1)
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.of[name], x); len(w.of[name]) == 0 {
			delete(w.of, name)
		}
		w.any.Add(-1)
	})
}

// changed tells who watches a name. Renewals are told, too.
func (w *watchers) changed(name string) {
	if w.any.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for x := range w.of[name] {
		x.tell()
	}
}
