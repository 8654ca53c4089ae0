// Package turns lets one goroutine of a process work on a name at a time: with others
// beside it they would only be in each other's way at the backend. Those that wait for a
// name get their turn in the order in which they came.
package turns

import (
	"context"
	"sync"
)

// Turns are those of all names. The zero value is ready.
type Turns struct {
	mu    sync.Mutex
	lines map[string][]chan struct{} // of those that wait, for each name that has one at work
}

// Enter waits for the name, as long as ctx lasts.
func (t *Turns) Enter(ctx context.Context, name string) error {
	t.mu.Lock()
	line, taken := t.lines[name]
	if !taken {
		if t.lines == nil {
			t.lines = map[string][]chan struct{}{}
		}
		t.lines[name] = nil
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.lines[name] = append(line, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !t.quit(name, turn) {
		t.Leave(name) // it was our turn at the same moment
	}
	return ctx.Err()
}

// quit takes one out that waits, and reports whether it still did.
func (t *Turns) quit(name string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[name]
	for i, other := range line {
		if other == turn {
			t.lines[name] = append(line[:i:i], line[i+1:]...)
			return true
		}
	}
	return false
}

// Leave lets the next one in.
func (t *Turns) Leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[name]
	if len(line) == 0 {
		delete(t.lines, name)
		return
	}
	t.lines[name] = line[1:]
	close(line[0])
}
