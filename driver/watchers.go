package driver

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watchers are those who want to hear of changes to names, of one driver: what a
// [Watcher] has to remember. The zero value has none.
type Watchers struct {
	any atomic.Bool // of has some, so that telling nobody costs nothing

	mu     sync.Mutex // protects what follows; never held while somebody is told
	follow func(name string, f func()) (stop func())
	of     map[string]*watched
	over   bool
}

// A watched name is followed as long as somebody watches it.
type watched struct {
	all  []*func()
	stop func()
}

// Follow sets what is called for each name that somebody begins to watch: it has f called
// at each change from now on, until stop is called. Neither blocks, nor calls f itself.
func (w *Watchers) Follow(follow func(name string, f func()) (stop func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.follow = follow
}

// Watch is what Watcher wants of it: f hears of the name from now on, until stop is
// called.
func (w *Watchers) Watch(name string, f func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return func() {}
	}
	n := w.of[name]
	if n == nil {
		n = &watched{stop: func() {}}
		if w.of == nil {
			w.of = map[string]*watched{}
		}
		w.of[name] = n
		w.any.Store(true)
	}
	n.all = append(slices.Clone(n.all), &f) // Notify may be reading the old one
	if len(n.all) == 1 && w.follow != nil {
		n.stop = w.follow(name, func() { w.Notify(name) })
	}
	return func() { w.leave(name, n, &f) }
}

func (w *Watchers) leave(name string, n *watched, f *func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(n.all, f)
	if i < 0 {
		return // it was stopped before
	}
	n.all = slices.Delete(slices.Clone(n.all), i, i+1)
	if len(n.all) == 0 {
		delete(w.of, name)
		w.any.Store(len(w.of) > 0)
		n.stop()
	}
}

// Any reports whether anybody watches anything.
func (w *Watchers) Any() bool { return w.any.Load() }

// Notify tells those who watch a name.
func (w *Watchers) Notify(name string) {
	if !w.any.Load() {
		return
	}
	w.mu.Lock()
	var all []*func()
	if n := w.of[name]; n != nil {
		all = n.all
	}
	w.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}

// NotifyAll tells everybody, when it is not known what has changed.
func (w *Watchers) NotifyAll() {
	for _, name := range w.Names() {
		w.Notify(name)
	}
}

// Names are those that are watched, in no order.
func (w *Watchers) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.of))
	for name := range w.of {
		names = append(names, name)
	}
	return names
}

// Close stops all: nobody is told any more, and nobody can watch.
func (w *Watchers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.of {
		n.all = nil
		n.stop()
	}
	w.of, w.over = nil, true
	w.any.Store(false)
}
