package screen

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"time"
)

// These sequences take over the screen, and give it back. Lines do not wrap, so that a
// character whose width the terminal counts differently damages no other line.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
	again = "\x1b[?25l\x1b[?7l\x1b[?2004h" // after another program may have had the terminal
	leave = "\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"

	erase = "\x1b[0m\x1b[2J"

	// Terminals that know these sequences show a frame at once.
	frameBegin = "\x1b[?2026h"
	frameEnd   = "\x1b[?2026l"
)

// A pen is the only goroutine that writes to the terminal. A write may hang as long as
// the terminal takes nothing, so the other goroutines only set what to do next, and wake
// the pen. After leave, the pen writes the sequence that gives the screen back, and then
// nothing until show.
type pen struct {
	out    io.Writer
	unused Style // styles to leave out
	wake   chan struct{}
	over   chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // protects all below
	lines  []Line     // what to show
	width  int
	height int
	fresh  bool          // the screen may show anything: draw all of it
	shown  bool          // this program should have the screen
	left   chan struct{} // closed when the screen is given back; nil before leave
	ended  bool
	err    error // the error of a failed write, after which the pen writes nothing
}

func newPen(out io.Writer, unused Style) *pen {
	p := &pen{out: out, unused: unused, wake: make(chan struct{}, 1), over: make(chan struct{})}
	go p.run()
	return p
}

// draw shows lines, after the ones that are being written.
func (p *pen) draw(lines []Line, width, height int) {
	p.tell(func() { p.lines, p.width, p.height = lines, width, height })
}

// show takes over the screen, or draws all of it again.
func (p *pen) show() {
	p.tell(func() { p.shown, p.fresh, p.left = true, true, nil })
}

// leave gives the screen back. It waits for that no longer than patience.
func (p *pen) leave(patience time.Duration) (left bool) {
	var done chan struct{}
	p.tell(func() {
		if p.left == nil {
			p.left = make(chan struct{})
		}
		p.shown, done = false, p.left
	})
	return await(done, patience)
}

// end gives the screen back, as leave does, and ends the goroutine.
func (p *pen) end(patience time.Duration) (ended bool) {
	p.tell(func() { p.shown, p.ended = false, true })
	return await(p.over, patience)
}

func await(done <-chan struct{}, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (p *pen) tell(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// failure is the error of a failed write.
func (p *pen) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pen) run() {
	defer close(p.over)
	var last *grid // what is on the screen; nil before enter and after leave
	for range p.wake {
		p.mu.Lock()
		shown, fresh, ended, left := p.shown, p.fresh, p.ended, p.left
		lines, width, height, failed := p.lines, p.width, p.height, p.err != nil
		p.fresh = false
		p.mu.Unlock()

		var b bytes.Buffer
		switch {
		case failed:
		case shown:
			last = p.frame(&b, last, fresh, layOut(lines, width, height))
		case last != nil:
			b.WriteString(leave)
			last = nil
		}
		p.write(b.Bytes(), shown)
		if !shown && left != nil {
			closeOnce(left)
		}
		if ended {
			return
		}
	}
}

// room is the number of bytes that a terminal takes at once after its pending output was
// discarded.
const room = 1024

// write sends b in pieces. Once the screen should be given back, it skips the rest of a
// frame. Otherwise, if the terminal took nothing more, the sequence that gives the screen
// back would wait behind the frame.
func (p *pen) write(b []byte, frame bool) {
	for piece := range slices.Chunk(b, room) {
		_, err := p.out.Write(piece)
		p.mu.Lock()
		if err != nil {
			p.err = err
		}
		over := err != nil || frame && (p.ended || !p.shown)
		p.mu.Unlock()
		if over {
			return
		}
	}
}

// frame writes the changes that turn the last screen into the next one.
func (p *pen) frame(b *bytes.Buffer, last *grid, fresh bool, next *grid) *grid {
	next.without(p.unused)
	switch {
	case last == nil:
		b.WriteString(enter)
	case fresh:
		b.WriteString(again)
	}
	if last == nil || fresh || last.width != next.width || last.height != next.height {
		b.WriteString(erase)
		last = newGrid(next.width, next.height)
	}
	var changes bytes.Buffer
	difference(&changes, last, next)
	if changes.Len() > 0 {
		b.WriteString(frameBegin)
		b.Write(changes.Bytes())
		b.WriteString(frameEnd)
	}
	return next
}

// closeOnce closes a channel that only this goroutine closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
