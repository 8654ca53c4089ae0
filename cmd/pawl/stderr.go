package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// Bounds of an asyncWriter.
const (
	maxAsyncLines     = 256                    // the number of lines that it keeps
	startFlushTimeout = 100 * time.Millisecond // before the command starts, so that its first line comes after pawl's
	endFlushTimeout   = time.Second            // the flush at the end of the process
)

// An asyncWriter writes lines to standard error in a goroutine of its own, so that Write
// never blocks. If standard error blocks, it keeps the first lines, drops the next ones,
// and later prints how many it dropped.
type asyncWriter struct {
	to   io.Writer
	wake chan struct{} // capacity 1

	mu      sync.Mutex
	lines   [][]byte
	dropped int
	flushes []chan struct{} // each is closed when the lines before it are written
}

func newAsyncWriter(to io.Writer) *asyncWriter {
	w := &asyncWriter{to: to, wake: make(chan struct{}, 1)}
	go func() {
		for range w.wake {
			w.writeLines()
		}
	}()
	return w
}

// Write queues a line.
func (w *asyncWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) < maxAsyncLines && w.dropped == 0 {
		w.lines = append(w.lines, bytes.Clone(line))
	} else {
		w.dropped++
	}
	w.wakeUp()
	return len(line), nil
}

func (w *asyncWriter) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// writeLines writes the queued lines. It ignores errors, because pawl goes on without a
// reader.
func (w *asyncWriter) writeLines() {
	w.mu.Lock()
	lines, dropped, flushes := w.lines, w.dropped, w.flushes
	w.lines, w.dropped, w.flushes = nil, 0, nil
	w.mu.Unlock()
	for _, line := range lines {
		_, _ = w.to.Write(line)
	}
	if dropped > 0 {
		fmt.Fprintf(w.to, "pawl: %s\n", notPrinted(dropped))
	}
	for _, done := range flushes {
		close(done)
	}
}

// flush waits until all lines are written, but not longer than d. It waits in short
// steps: if the machine pauses, one step passes, and the others are left to write in.
func (w *asyncWriter) flush(d time.Duration) {
	const steps = 100
	done := make(chan struct{})
	w.mu.Lock()
	w.flushes = append(w.flushes, done)
	w.wakeUp()
	w.mu.Unlock()
	for range steps {
		select {
		case <-done:
			return
		case <-time.After(d / steps):
		}
	}
}

func notPrinted(lines int) string {
	return fmt.Sprintf("lines that were not printed, because standard error was not read: %d", lines)
}
