package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"
)

const (
	pieceSize     = 32 << 10 // bytes that one Read reads at most
	pieceOverhead = 128      // bytes of memory that a piece costs beside its data
	pipeCapacity  = 1 << 20  // bytes of memory in one pipe
)

// A piece is the data of one call to Read.
type piece struct {
	data []byte
	due  time.Time // when it is delivered at the earliest
}

func (p piece) cost() int { return len(p.data) + pieceOverhead }

// streamEnd is the way in which a stream has ended.
type streamEnd int

const (
	streamOpen  streamEnd = iota
	streamEOF             // FIN: the other direction goes on
	streamReset           // RST
)

// A pipe is one direction of a link. One goroutine reads 'from' into the queue, another
// one writes the queue to 'to'.
type pipe struct {
	link     *link
	other    *pipe // the opposite direction
	from, to net.Conn

	// The mutex of the proxy protects these.
	queue     []piece
	size      int       // the memory of the queue, and of the piece that is being written
	end       streamEnd // passed on to the receiver after the queue
	endPassed bool      // the end was passed on
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
// waits until there is room for more. It returns false if err has ended the stream, or
// the link is closed.
func (w *pipe) add(data []byte, err error) bool {
	l, p := w.link, w.link.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(data) == 0 || l.closed || w.failed: // without a receiver, read goes on and drops the data
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

// write writes the queue, and passes the end of the stream on behind it. It ends early if
// the receiver or the link is gone.
func (w *pipe) write() {
	l, mu := w.link, &w.link.proxy.mu
	mu.Lock()
	defer mu.Unlock()
	for w.hasDue() {
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

// hasDue waits for a piece that is due. It returns false if only the end of the stream is
// left, or if the link is closed. The caller holds the mutex.
func (w *pipe) hasDue() bool {
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

// passEnd passes the end of the stream on. If a reply was swallowed, the replies get no
// end: the link is reset when the fault ends. The caller holds the mutex.
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
			_ = half.CloseWrite() // has no effect if the receiver is gone, which the other pipe notices
		}
	}
}

// fail drops the data that the receiver cannot get any more. The sender still gets all
// that the receiver had sent, and then its stream breaks. The caller holds the mutex.
func (w *pipe) fail() {
	w.failed, w.queue, w.size = true, nil, 0
	if w.other.failed || w.other.endPassed {
		w.link.reset()
	}
}
