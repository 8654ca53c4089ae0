// Package turns lets one goroutine of a process work on a name at a time, because several
// would only get in each other's way at the backend. Waiting goroutines get their turns
// in the order in which they came.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Turns are the turns of all names. The zero value is ready.
type Turns struct {
	mu    sync.Mutex
	lines map[string][]waiting // for each name on which a goroutine works
}

type waiting struct {
	turn  chan struct{}
	ahead bool // of those whose ahead is false
}

// Enter waits for the turn on a name, as long as ctx lasts.
func (t *Turns) Enter(ctx context.Context, name string) error { return t.enter(ctx, name, false) }

// EnterAhead is Enter, but goes ahead of all that wait by Enter.
func (t *Turns) EnterAhead(ctx context.Context, name string) error { return t.enter(ctx, name, true) }

func (t *Turns) enter(ctx context.Context, name string, ahead bool) error {
	t.mu.Lock()
	line, taken := t.lines[name]
	if !taken {
		if t.lines == nil {
			t.lines = map[string][]waiting{}
		}
		t.lines[name] = nil
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	at := len(line)
	for ahead && at > 0 && !line[at-1].ahead {
		at--
	}
	t.lines[name] = slices.Insert(line, at, waiting{turn, ahead})
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !t.quit(name, turn) {
		t.Leave(name) // the turn came at the same moment
	}
	return ctx.Err()
}

// quit takes out a waiter, and reports whether it was still waiting.
func (t *Turns) quit(name string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[name]
	for i, other := range line {
		if other.turn == turn {
			t.lines[name] = append(line[:i:i], line[i+1:]...)
			return true
		}
	}
	return false
}

// Leave passes the turn on.
func (t *Turns) Leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[name]
	if len(line) == 0 {
		delete(t.lines, name)
		return
	}
	t.lines[name] = line[1:]
	close(line[0].turn)
}
