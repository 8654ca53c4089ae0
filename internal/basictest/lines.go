package basictest

import (
	"bytes"
	"sync"
)

// Lines has what several goroutines write, and can be read meanwhile. Its zero value is
// empty.
type Lines struct {
	mu  sync.Mutex // protects all below
	buf bytes.Buffer
}

func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
