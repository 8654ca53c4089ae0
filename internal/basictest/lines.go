package basictest

import (
	"bytes"
	"sync"
)

// Lines is a buffer that several goroutines can write and read at the same time. Its zero
// value is empty.
type Lines struct {
	mu  sync.Mutex // protects buf
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
