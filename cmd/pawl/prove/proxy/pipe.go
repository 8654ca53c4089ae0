package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"
)

const (
	pieceSize = 32 << 10 // bytes that are read at once
	overhead  = 128      // bytes of memory that a piece costs beside its data
	capacity  = 1 << 20  // bytes of memory in one pipe
)

// A piece is the data of one call to Read, or the end of the stream.
type piece struct {
	data []byte
	due  time.Time // when it is delivered at the earliest
	end  ending    // how the stream ends; such a piece has no data
}

// ending is the kind of end that a stream has.
type ending int

const (
	goesOn ending = iota
	ends          // FIN: the other direction goes on
	breaks        // RST
)

func (p piece) cost() int { return len(p.data) + overhead }

// A pipe is one direction of a link. One goroutine reads 'from' into the queue, another
// one writes the queue to 'to'.
type pipe struct {
	link     *link
	other    *pipe // the opposite direction
	from, to net.Conn
	changed  chan struct{} // wakes the goroutine that writes
	drained  chan struct{} // wakes the goroutine that reads

	// The mutex of the proxy protects these.
	queue     []piece
	size      int       // the memory of the queue, and of the piece that is being written
	lastDue   time.Time // when the last piece of the queue is due
	exhausted bool      // nothing more can be read
	endPassed bool      // the end was passed on to the receiver
	failed    bool      // the receiver is gone
}

func (w *pipe) init(l *link, other *pipe) {
	w.link, w.other = l, other
	w.changed, w.drained = make(chan struct{}, 1), make(chan struct{}, 1)
}

// wake wakes the goroutine that waits for a channel, now or when it next waits.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read reads until the sender ends its stream, or the link is over.
func (w *pipe) read() {
	b := make([]byte, pieceSize)
	for {
		n, err := w.from.Read(b)
		if n > 0 && !w.add(bytes.Clone(b[:n])) {
			return
		}
		if err != nil {
			w.addEnd(errors.Is(err, io.EOF))
			return
		}
	}
}

// add queues data, or drops it if the receiver is gone or the fault swallows it. Then it
// waits until there is room for more. It returns false when the link is over.
func (w *pipe) add(data []byte) bool {
	p := w.link.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.link.over || w.failed: // without a receiver, read goes on and drops the data
	case p.fault.swallows(w):
		w.link.hole = true
	default:
		w.push(piece{data: data}, p.fault.delay(w.link))
	}
	for !w.link.over && w.size > capacity-pieceSize-overhead {
		p.mu.Unlock()
		select {
		case <-w.drained:
		case <-w.link.life.Done():
		}
		p.mu.Lock()
	}
	return !w.link.over
}

// addEnd puts the end of the stream behind all data, so that a request reaches the server
// even if the worker has given it up meanwhile. If a reply was swallowed, the replies get
// no end: the link is reset when the fault ends.
func (w *pipe) addEnd(properly bool) {
	w.link.proxy.mu.Lock()
	defer w.link.proxy.mu.Unlock()
	w.exhausted = true
	switch {
	case w.link.over || w.failed:
	case properly && !w.other.failed:
		w.pushEnd(ends)
	default:
		w.pushEnd(breaks)
	}
}

func (w *pipe) pushEnd(e ending) {
	if w == &w.link.replies && w.link.hole {
		return
	}
	w.push(piece{end: e}, 0)
}

// push appends a piece. The caller holds the mutex.
func (w *pipe) push(next piece, delay time.Duration) {
	if delay > 0 {
		next.due = time.Now().Add(delay)
	}
	if next.due.Before(w.lastDue) {
		next.due = w.lastDue
	}
	w.lastDue = next.due
	w.queue = append(w.queue, next)
	w.size += next.cost()
	wake(w.changed)
}

// makeAllDue makes all pieces due. The caller holds the mutex.
func (w *pipe) makeAllDue() {
	w.lastDue = time.Time{}
	for i := range w.queue {
		w.queue[i].due = time.Time{}
	}
	wake(w.changed)
}

// write writes the queue until the link is over or the receiver is gone. After the end of
// the stream it waits, because the stream may still break.
func (w *pipe) write() {
	for {
		next, ok := w.next()
		if !ok {
			return
		}
		if next.end == goesOn {
			if _, err := w.to.Write(next.data); err != nil {
				w.fail()
				return
			}
		}
		w.written(next)
	}
}

// next waits for the next piece, and takes it. It returns false when the link is over.
func (w *pipe) next() (piece, bool) {
	for {
		next, wait, ok := w.take()
		if ok {
			return next, true
		}
		var timeout <-chan time.Time
		if wait > 0 {
			timeout = time.After(wait)
		}
		select {
		case <-w.changed:
		case <-timeout:
		case <-w.link.life.Done():
			return piece{}, false
		}
	}
}

// take takes a piece that is due, or returns how long to wait for one. A wait of 0 lasts
// until something changes.
func (w *pipe) take() (next piece, wait time.Duration, ok bool) {
	w.link.proxy.mu.Lock()
	defer w.link.proxy.mu.Unlock()
	if w.link.over || w.link.proxy.fault.silent() || len(w.queue) == 0 {
		return piece{}, 0, false
	}
	next = w.queue[0]
	if wait = time.Until(next.due); wait > 0 {
		return piece{}, wait, false
	}
	w.queue[0] = piece{} // free its memory, which is no longer counted
	w.queue = w.queue[1:]
	return next, 0, true
}

// written makes room for the next piece, or passes the end of the stream on.
func (w *pipe) written(done piece) {
	w.link.proxy.mu.Lock()
	defer w.link.proxy.mu.Unlock()
	w.size -= done.cost()
	wake(w.drained)
	switch done.end {
	case goesOn:
	case breaks:
		w.link.reset()
	case ends:
		w.endPassed = true
		if w.other.endPassed {
			w.link.close()
			return
		}
		if half, ok := w.to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // has no effect if the receiver is gone, which the other pipe notices
		}
	}
}

// fail drops the data that the receiver cannot get any more. The sender still gets all
// that the receiver had sent, and then its stream breaks. If the receiver's own end was
// queued already, fail queues the break behind it.
func (w *pipe) fail() {
	w.link.proxy.mu.Lock()
	defer w.link.proxy.mu.Unlock()
	w.failed, w.queue, w.size = true, nil, 0
	wake(w.drained)
	switch {
	case w.other.failed:
		w.link.reset()
	case w.other.exhausted:
		w.other.pushEnd(breaks)
	}
}
