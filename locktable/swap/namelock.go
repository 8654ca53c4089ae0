package swap

import (
	"context"
	"slices"
	"sync"
)

// nameLocks let one goroutine of the process at a time run a single step on a name. Only
// one of several concurrent swaps on a name can succeed, and a Gatherer sends only one in
// a request. A batch of steps does not lock, and does not gather. Goroutines get the lock
// of a name in the order of their calls, those with ahead first. The zero value is ready.
type nameLocks struct {
	mu     sync.Mutex
	queues map[string][]nameWaiter // for each name that is locked
}

type nameWaiter struct {
	locked chan struct{}
	ahead  bool // goes before waiters whose ahead is false
}

// lock locks a name, and waits for it until ctx ends. With ahead, it goes before all
// waiters that have no ahead.
func (l *nameLocks) lock(ctx context.Context, name string, ahead bool) error {
	l.mu.Lock()
	queue, isLocked := l.queues[name]
	if !isLocked {
		if l.queues == nil {
			l.queues = map[string][]nameWaiter{}
		}
		l.queues[name] = nil
		l.mu.Unlock()
		return nil
	}
	locked := make(chan struct{})
	at := len(queue)
	for ahead && at > 0 && !queue[at-1].ahead {
		at--
	}
	l.queues[name] = slices.Insert(queue, at, nameWaiter{locked, ahead})
	l.mu.Unlock()
	select {
	case <-locked:
		return nil
	case <-ctx.Done():
	}
	if !l.removeWaiter(name, locked) {
		l.unlock(name) // the waiter got the lock at the same moment
	}
	return ctx.Err()
}

// removeWaiter removes a waiter, and reports whether it was still waiting.
func (l *nameLocks) removeWaiter(name string, locked chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.queues[name], func(w nameWaiter) bool { return w.locked == locked })
	if i >= 0 {
		l.queues[name] = slices.Delete(l.queues[name], i, i+1)
	}
	return i >= 0
}

// unlock passes the lock to the first waiter.
func (l *nameLocks) unlock(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queues[name]
	if len(queue) == 0 {
		delete(l.queues, name)
		return
	}
	l.queues[name] = queue[1:]
	close(queue[0].locked)
}
