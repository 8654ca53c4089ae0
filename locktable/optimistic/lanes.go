package optimistic

import (
	"context"
	"sync"
)

// lanes let one goroutine of this process work on a name at a time: with others beside it
// all but one of their swaps would be in vain. Those that wait for a name get their turn
// in the order in which they came.
type lanes struct {
	mu    sync.Mutex
	lines map[string][]chan struct{} // of those that wait, for each name that has one at work
}

// enter waits for the name, as long as ctx lasts.
func (l *lanes) enter(ctx context.Context, name string) error {
	l.mu.Lock()
	line, taken := l.lines[name]
	if !taken {
		if l.lines == nil {
			l.lines = map[string][]chan struct{}{}
		}
		l.lines[name] = nil
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	l.lines[name] = append(line, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !l.quit(name, turn) {
		l.leave(name) // it was our turn at the same moment
	}
	return ctx.Err()
}

// quit takes one out that waits, and reports whether it still did.
func (l *lanes) quit(name string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[name]
	for i, t := range line {
		if t == turn {
			l.lines[name] = append(line[:i:i], line[i+1:]...)
			return true
		}
	}
	return false
}

// leave lets the next one in.
func (l *lanes) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[name]
	if len(line) == 0 {
		delete(l.lines, name)
		return
	}
	l.lines[name] = line[1:]
	close(line[0])
}
