package driver

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Watchers are the functions that watch the names of one driver. A [Watcher] keeps its
// list of watches in a Watchers. The zero value is an empty list.
type Watchers struct {
	hasWatches atomic.Bool // byName has an entry; Notify without watches then costs nothing

	mu     sync.Mutex // protects the fields below; never held while a watch's function runs
	follow func(name string, f func()) (stop func())
	byName map[string]*nameWatches
	closed bool
}

type nameWatches struct {
	all  []*func()
	stop func()
}

// OnFirstWatch sets the function that Watch calls for each name that gets its first
// watch. From then on follow makes f run at each change of the name, until stop is
// called. Neither follow nor stop may block, or call f before it returns.
func (w *Watchers) OnFirstWatch(follow func(name string, f func()) (stop func())) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.follow = follow
}

// Watch is the method of Watcher: Notify calls f for the name from now on, until stop is
// called.
func (w *Watchers) Watch(name string, f func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || f == nil {
		return func() {}
	}
	n := w.byName[name]
	if n == nil {
		n = &nameWatches{stop: func() {}}
		if w.byName == nil {
			w.byName = map[string]*nameWatches{}
		}
		w.byName[name] = n
		w.hasWatches.Store(true)
	}
	n.all = append(slices.Clone(n.all), &f) // Notify may be reading the old list
	if len(n.all) == 1 && w.follow != nil {
		n.stop = w.follow(name, func() { w.Notify(name) })
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.Index(n.all, &f)
		if i < 0 {
			return // it was already stopped
		}
		n.all = slices.Delete(slices.Clone(n.all), i, i+1)
		if len(n.all) == 0 {
			delete(w.byName, name)
			w.hasWatches.Store(len(w.byName) > 0)
			n.stop()
		}
	}
}

// Any reports whether there is any watch.
func (w *Watchers) Any() bool { return w.hasWatches.Load() }

// Notify calls the functions that watch a name.
func (w *Watchers) Notify(name string) {
	if !w.hasWatches.Load() {
		return
	}
	w.mu.Lock()
	var all []*func()
	if n := w.byName[name]; n != nil {
		all = n.all
	}
	w.mu.Unlock()
	for _, f := range all {
		(*f)()
	}
}

// NotifyAll notifies the watches of all names, if the driver does not know what changed.
func (w *Watchers) NotifyAll() {
	for _, name := range w.Names() {
		w.Notify(name)
	}
}

// Names returns the watched names, in no order.
func (w *Watchers) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.byName))
}

// Close ends all watches: no function is called after it, and Watch does nothing.
func (w *Watchers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.byName {
		n.all = nil
		n.stop()
	}
	w.byName, w.closed = nil, true
	w.hasWatches.Store(false)
}
