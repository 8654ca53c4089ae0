package screen

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"time"
)

// What is sent to take the screen over, and to give it back. Lines are not wrapped: a
// character whose width the terminal sees differently spoils no other line.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h"
	again = "\x1b[?25l\x1b[?7l\x1b[?2004h" // after others may have had it
	leave = "\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"

	erase = "\x1b[0m\x1b[2J"

	// A frame is shown at once, where the terminal can.
	frameBegin = "\x1b[?2026h"
	frameEnd   = "\x1b[?2026l"
)

// A pen is the one goroutine that writes to the terminal. It may be stuck in a write for
// as long as the terminal takes nothing; the others only leave word with it. What it
// writes last when it is told to leave is the last thing that is written at all, until it
// is told to show again.
type pen struct {
	out    io.Writer
	unused Style // styles that are not wanted
	wake   chan struct{}
	over   chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // protects all below
	lines  []Line     // what is to be seen
	width  int
	height int
	fresh  bool          // the screen may hold anything: all of it is drawn
	shown  bool          // the screen is to be ours
	left   chan struct{} // closed when it is given back; nil while it is ours
	ended  bool
	err    error // what a write has failed with: nothing is written after it
}

func newPen(out io.Writer, unused Style) *pen {
	p := &pen{out: out, unused: unused, wake: make(chan struct{}, 1), over: make(chan struct{})}
	go p.run()
	return p
}

// draw has lines shown, at the latest when those before them are.
func (p *pen) draw(lines []Line, width, height int) {
	p.tell(func() { p.lines, p.width, p.height = lines, width, height })
}

// show takes the screen, or draws all of it anew.
func (p *pen) show() {
	p.tell(func() { p.shown, p.fresh, p.left = true, true, nil })
}

// leave gives the screen back, and waits for that as long as patience lasts.
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

// end is leave, and the end of the goroutine.
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

// failure is what a write has failed with.
func (p *pen) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pen) run() {
	defer close(p.over)
	var last *grid // what is on the screen; nil while it is not ours
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

// room is what a terminal takes at once, after all that it had not taken was thrown away.
const room = 1024

// write sends b in pieces. Once the screen is to be given back, it leaves out the rest of
// a frame: the terminal might take nothing more, and the bytes that give it back would
// wait behind that.
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

// frame writes what makes a screen of the one before it.
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
