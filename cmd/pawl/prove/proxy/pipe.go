package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"
)

const (
	pieceSize     = 32 << 10 // the most bytes of one Read
	pieceOverhead = 128      // the memory of a piece without its data, in bytes
	pipeCapacity  = 1 << 20  // the most memory of one pipe, in bytes
)

// A piece is the data of one call to Read.
type piece struct {
	data []byte
	due  time.Time // the earliest time of its delivery
}

func (p piece) cost() int { return len(p.data) + pieceOverhead }

// streamEnd says how a stream has ended, if it has.
type streamEnd int

const (
	streamOpen  streamEnd = iota
	streamEOF             // FIN: the other direction goes on
	streamReset           // RST
)

// A pipe is one direction of a link. One goroutine reads from into the queue, and another
// one writes the queue to to.
type pipe struct {
	link     *link
	other    *pipe // the opposite direction
	from, to net.Conn

	// The proxy's mutex protects these fields.
	queue     []piece
	size      int       // the memory of the queue and of the piece that write is sending
	end       streamEnd // forwarded to the receiver after the queue
	endPassed bool      // end was forwarded
	failed    bool      // the receiver is gone
}

// read reads until the sender ends its stream, or the link is closed.
func (w *pipe) read() {
	b := make([]byte, pieceSize)
	for {
		n, err := w.from.Read(b)
		if !w.add(bytes.Clone(b[:n]), err) {
			return
		}
	}
}

// add queues data, or drops it if the receiver is gone or the fault swallows it. Then it
// waits until the pipe has room for more. It returns false if err ends the stream or the
// link is closed.
func (w *pipe) add(data []byte, err error) bool {
	l, p := w.link, w.link.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(data) == 0 || l.closed || w.failed: // if the receiver is gone, read drops the data
	case p.fault.swallows(w):
		l.replyDropped = true
	default:
		w.push(piece{data: data}, p.fault.delay(l))
	}
	if err != nil {
		w.end = streamReset
		if errors.Is(err, io.EOF) {
			w.end = streamEOF
		}
		l.changed.Broadcast()
		return false
	}
	for !l.closed && w.size > pipeCapacity-pieceSize-pieceOverhead {
		l.changed.Wait()
	}
	return !l.closed
}

// push appends a piece. The caller holds the mutex.
func (w *pipe) push(next piece, delay time.Duration) {
	if delay > 0 {
		next.due = time.Now().Add(delay)
	}
	w.queue = append(w.queue, next)
	w.size += next.cost()
	w.link.changed.Broadcast()
}

// write writes the queue, and then forwards the end of the stream. It returns early if
// the receiver is gone or the link is closed.
func (w *pipe) write() {
	l, mu := w.link, &w.link.proxy.mu
	mu.Lock()
	defer mu.Unlock()
	for w.waitDue() {
		next := w.queue[0]
		w.queue[0] = piece{} // so that the queue does not keep its data
		w.queue = w.queue[1:]
		mu.Unlock()
		_, err := w.to.Write(next.data)
		mu.Lock()
		w.size -= next.cost()
		l.changed.Broadcast()
		if err != nil {
			w.fail()
			return
		}
	}
	if !l.closed {
		w.passEnd()
	}
}

// waitDue waits for a piece that is due. It returns false if the queue is empty and the
// stream has ended, or if the link is closed. The caller holds the mutex.
func (w *pipe) waitDue() bool {
	l := w.link
	for !l.closed {
		var wait time.Duration
		switch {
		case l.proxy.fault.silent():
		case len(w.queue) > 0:
			if wait = time.Until(w.queue[0].due); wait <= 0 {
				return true
			}
		case w.end != streamOpen:
			return false
		}
		l.wait(wait)
	}
	return false
}

// passEnd forwards the end of the stream. If Swallow has dropped a reply, it omits the
// end of the replies: the link is reset when the fault ends. The caller holds the mutex.
func (w *pipe) passEnd() {
	l := w.link
	switch {
	case l.replyDropped && w == &l.replies:
	case w.end == streamReset || w.other.failed:
		l.reset()
	case w.other.endPassed:
		l.close()
	default:
		w.endPassed = true
		if half, ok := w.to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // if the receiver is gone, the other pipe notices it
		}
	}
}

// fail drops the queue, because the receiver is gone. The sender still gets the data that
// the receiver had sent, and then a reset. The caller holds the mutex.
func (w *pipe) fail() {
	w.failed, w.queue, w.size = true, nil, 0
	if w.other.failed || w.other.endPassed {
		w.link.reset()
	}
}
