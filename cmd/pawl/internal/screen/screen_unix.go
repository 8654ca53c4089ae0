//go:build unix

package screen

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// restoreTimeout is the longest time that the terminal may take to accept the sequence
// that gives it back.
const restoreTimeout = 500 * time.Millisecond

// A Screen is a terminal under the control of this program. Its methods may be called
// from any goroutine.
type Screen struct {
	in, out *os.File
	pen     *pen
	events  chan Event
	done    chan struct{} // closed by Close
	signals chan os.Signal
	stops   bool // Ctrl-Z is not ignored

	mu     sync.Mutex // protects all below, and the modes of the terminal
	modes  *term.State
	closed bool
}

// Open takes over a terminal: in sends its keys, and out shows its lines. The error
// matches errors.ErrUnsupported if they are no terminal that can be drawn on.
func Open(in, out *os.File) (*Screen, error) {
	if !Drawable(in, out) {
		return nil, errors.ErrUnsupported
	}
	unused := Style(0)
	if os.Getenv("NO_COLOR") != "" {
		unused = colors
	}
	s := &Screen{
		in: in, out: out, events: make(chan Event), done: make(chan struct{}), signals: make(chan os.Signal, 16),
	}
	// Catch the signals before the modes change, so that none is missed.
	signal.Notify(s.signals, unix.SIGWINCH, unix.SIGCONT)
	if s.stops = !signal.Ignored(unix.SIGTSTP); s.stops {
		signal.Notify(s.signals, unix.SIGTSTP)
	}
	if err := s.raw(); err != nil {
		signal.Stop(s.signals)
		return nil, err
	}
	s.pen = newPen(out, unused)
	s.Draw(nil)
	s.pen.show()
	sent := make(chan []byte)
	go s.listen(sent)
	go func() {
		if err := read(in, sent, s.done); err != nil {
			s.send(Event{Gone: err})
		}
	}()
	return s, nil
}

// Drawable reports whether in and out are a terminal that can be drawn on.
func Drawable(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

// raw sets the modes in which each key comes as it is pressed. If this process is in the
// background, the system stops it until it is in the foreground.
func (s *Screen) raw() error {
	for {
		modes, err := term.MakeRaw(int(s.in.Fd()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case s.modes == nil:
			s.modes = modes
		}
		return nil
	}
}

// Size returns the numbers of columns and lines: 80 and 24 if they are unknown.
func (s *Screen) Size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return min(width, 1000), min(height, 1000) // larger sizes are mistakes, or attacks
}

// Events yields the events of the terminal. It is never closed.
func (s *Screen) Events() <-chan Event { return s.events }

// Draw shows lines, and does not wait for the terminal. If frames follow each other too
// quickly, it may skip some, but never the last.
func (s *Screen) Draw(lines []Line) {
	width, height := s.Size()
	s.pen.draw(lines, width, height)
	if err := s.pen.failure(); err != nil {
		go s.send(Event{Gone: err})
	}
}

// Go runs f in a goroutine. If f panics, Go gives the terminal back before the panic is
// printed.
func (s *Screen) Go(f func()) {
	go func() {
		defer s.CloseOnPanic()
		f()
	}()
}

// CloseOnPanic must be deferred: if the function panics, it gives the terminal back
// before the panic is printed.
func (s *Screen) CloseOnPanic() {
	if r := recover(); r != nil {
		_ = s.Close()
		panic(r)
	}
}

// errStuck is the error of Close if the terminal takes no output.
var errStuck = errors.New("the terminal does not take what is written to it")

// Close gives the terminal back, and writes nothing after that. If the terminal takes no
// output, Close does not wait for it, and returns an error; later writes to the terminal
// may then hang for ever. A second Close does nothing.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	signal.Stop(s.signals)
	ended := s.pen.end(restoreTimeout)
	if !ended { // discard pending output in favour of the reset
		flush(s.out)
		ended = s.pen.end(restoreTimeout)
	}
	err := term.Restore(int(s.in.Fd()), s.modes)
	if !ended {
		return errStuck
	}
	return err
}

// send passes an event on, unless the screen is closed.
func (s *Screen) send(e Event) {
	select {
	case s.events <- e:
	case <-s.done:
	}
}

// listen turns input and signals into events, until Close.
func (s *Screen) listen(sent <-chan []byte) {
	defer s.CloseOnPanic()
	var t typist
	for {
		var pause <-chan time.Time
		if t.waits() {
			pause = time.After(escapePause)
		}
		var events []Event
		select {
		case more := <-sent:
			events = t.keys(more, false)
		case <-pause:
			events = t.keys(nil, true)
		case g := <-s.signals:
			s.signaled(g)
			events = []Event{{Redraw: true}}
		case <-s.done:
			return
		}
		for _, e := range events {
			s.send(e)
		}
	}
}

func (s *Screen) signaled(g os.Signal) {
	switch g {
	case unix.SIGTSTP:
		s.stop(false)
	case unix.SIGCONT:
		s.resume()
	}
}

// Suspend gives the terminal back, and stops the group of this process, as Ctrl-Z does
// outside of raw mode. In raw mode Ctrl-Z is a key like others. Suspend returns when the
// process is continued, and has taken over the terminal again.
func (s *Screen) Suspend() { s.stop(true) }

func (s *Screen) stop(all bool) {
	if sid, err := unix.Getsid(0); err != nil || sid == unix.Getpgrp() || !s.stops {
		return // no shell would continue the first process of a session
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.pen.leave(restoreTimeout)
	_ = term.Restore(int(s.in.Fd()), s.modes)
	s.mu.Unlock()
	if all {
		// The group also has a script that runs this program, for which a shell waits.
		// This process ignores the signal to the group, because stopProcess stops it.
		signal.Ignore(unix.SIGTSTP)
		_ = unix.Kill(0, unix.SIGTSTP)
	}
	stopProcess()
	if all {
		signal.Notify(s.signals, unix.SIGTSTP)
	}
	s.resume()
	s.Go(func() { s.send(Event{Redraw: true}) })
}

// resume takes over the terminal again. Another program may have had it meanwhile, so
// resume sets the modes again, and draws the whole screen.
func (s *Screen) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	_ = s.raw() // after an error, keys arrive only with Enter
	s.pen.show()
}

// EndSignals are the signals that should end the process, including the one that the
// terminal sends when it hangs up.
var EndSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}
