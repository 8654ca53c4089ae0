package driver

import (
	"slices"
	"sync"
)

// Listeners are the functions that receive the signals of one driver. The zero value has
// none.
type Listeners struct {
	mu  sync.Mutex // protects the list; never held while a listener is called
	all []*func(Signal)
}

// Listen is the method of Signaler: f receives each signal from now on, until stop is
// called.
func (l *Listeners) Listen(f func(Signal)) (stop func()) {
	if f == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clone(l.all), &f) // Notify may be reading the old list
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(g *func(Signal)) bool { return g == &f })
	}
}

// Notify calls each listener with a signal, in the order in which they were added.
func (l *Listeners) Notify(s Signal) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		(*f)(s)
	}
}
