package screen

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"
	"golang.org/x/term"
)

// A Screen is a terminal under the control of this program. Its methods may be called
// from any goroutine, except Draw.
type Screen struct {
	terminal tcell.Screen
	stop     func(group bool) // nil if no shell would continue the process
	signals  chan os.Signal
	frames   chan []Line // the latest frame that is not yet drawn
	events   chan Event
	done     chan struct{} // closed by Close

	mu     sync.Mutex // protects closed, and is held while the terminal is taken or given back
	closed bool

	drawing sync.Mutex  // tcell must not draw while it gives the terminal back
	resized atomic.Bool // tcell does not know the new size yet
}

// An Event is one thing that happened to the terminal.
type Event struct {
	Key    Key  // the key that was pressed; "" with the other events
	Pasted bool // the key is a part of pasted text, and was not pressed

	Redraw bool  // the size has changed, or another program had the terminal
	Gone   error // the terminal has hung up
}

// A Key is a pressed key: a character ("q", "é"), or the name of a key: "enter", "esc",
// "backspace", "up", "down", "left", "right", "home", "end", "pgup", "pgdown", "ctrl+c".
// Other keys are "".
type Key string

// Rune returns the character of a key that has one.
func (k Key) Rune() (r rune, ok bool) {
	r, n := utf8.DecodeRuneInString(string(k))
	return r, n == len(k) && n > 0 && r != utf8.RuneError
}

// Drawable reports whether the standard input and output are a terminal that can be drawn
// on.
func Drawable() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
}

// EndSignals are the signals that should end the process, including the one that the
// terminal sends when it hangs up.
var EndSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// Open takes over the terminal. stop stops this process, or with group its whole group,
// and returns when it is continued; it is nil if the process must not be stopped.
func Open(stop func(group bool)) (*Screen, error) {
	// Pawl writes UTF-8 whatever the locale says, so that no name becomes question marks.
	// It does not query what the terminal can do, because it needs nothing unusual, and
	// the shell could receive the answer.
	tcell.RegisterEncoding("US-ASCII", tcell.GetEncoding("UTF-8"))
	tcell.SetEncodingFallback(tcell.EncodingFallbackUTF8)
	t, err := newTerminal(tcell.OptNegotiation(false))
	if err != nil {
		return nil, err
	}
	return open(t, stop)
}

func open(t tcell.Screen, stop func(group bool)) (*Screen, error) {
	s := &Screen{
		terminal: t, stop: stop, signals: make(chan os.Signal, 16),
		frames: make(chan []Line, 1), events: make(chan Event), done: make(chan struct{}),
	}
	// Catch the signals before the modes change, so that none is missed.
	s.catchSignals()
	if err := t.Init(); err != nil {
		signal.Stop(s.signals)
		return nil, err
	}
	t.EnablePaste()
	s.Go(s.listen)
	s.Go(s.draw)
	return s, nil
}

// Size returns the numbers of columns and lines: 80 and 24 if they are unknown. It does
// not wait for the terminal, as the Size of tcell does.
func (s *Screen) Size() (width, height int) { return sizeOf(int(os.Stdout.Fd())) }

func sizeOf(terminal int) (width, height int) {
	width, height, err := term.GetSize(terminal)
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return min(width, 1000), min(height, 1000) // larger sizes are mistakes, or attacks
}

// Events yields the events of the terminal. It is never closed.
func (s *Screen) Events() <-chan Event { return s.events }

// Draw shows lines, and does not wait for the terminal. If frames follow each other too
// quickly, it may skip some, but never the last. Only one goroutine may call it.
func (s *Screen) Draw(lines []Line) {
	select {
	case <-s.frames:
	default:
	}
	s.frames <- lines
}

// draw is the only goroutine that waits while the terminal takes no output.
func (s *Screen) draw() {
	for {
		select {
		case lines := <-s.frames:
			s.show(lines)
		case <-s.done:
			return
		}
	}
}

func (s *Screen) show(lines []Line) {
	s.drawing.Lock()
	defer s.drawing.Unlock()
	if s.resized.Swap(false) {
		s.terminal.Sync() // tcell takes the new size
	}
	s.terminal.Clear()
	for y, line := range lines {
		x := 0
		for _, span := range line {
			text := Clean(span.Text)
			s.terminal.PutStrStyled(x, y, text, s.style(span.Style))
			x += displaywidth.String(text)
		}
	}
	s.terminal.Show()
}

func (s *Screen) style(look Style) tcell.Style {
	style := tcell.StyleDefault.Bold(look&Bold != 0).Dim(look&Dim != 0).Reverse(look&Reverse != 0)
	if s.terminal.Colors() == 0 { // for example with NO_COLOR; tcell would reverse dark colours
		return style
	}
	switch {
	case look&Red != 0:
		return style.Foreground(color.Maroon)
	case look&Green != 0:
		return style.Foreground(color.Green)
	case look&Yellow != 0:
		return style.Foreground(color.Olive)
	}
	return style
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

// Close gives the terminal back. If the terminal takes no output, Close does not wait for
// it, and returns an error. A second Close does nothing.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	signal.Stop(s.signals)
	return s.giveBack(s.terminal.Fini)
}

// errStuck is the error of Close if the terminal takes no output.
var errStuck = errors.New("the terminal does not take what is written to it")

// restoreCodes ends the modes that tcell begins. giveBack writes it, because giveBack may
// have discarded a part of the output of tcell.
const restoreCodes = "\x1b[?25h\x1b[?1l\x1b>\x1b[m\x1b[?7h\x1b[?2004l\x1b[?1049l"

// giveBack calls f, which gives the terminal back, and returns after 2.3 s at the latest.
// If the terminal takes no output, giveBack discards the pending output, again and again,
// so that f can write.
func (s *Screen) giveBack(f func()) error {
	done := inBackground(func() {
		s.drawing.Lock()
		defer s.drawing.Unlock()
		f()
	})
	if doneWithin(done, 250*time.Millisecond) {
		return nil
	}
	for range 50 {
		discardOutput()
		if !doneWithin(done, 20*time.Millisecond) {
			continue
		}
		// If this write blocks, too, the next discardOutput may discard its beginning.
		if done = inBackground(func() { _, _ = os.Stdout.WriteString(restoreCodes) }); doneWithin(done, 20*time.Millisecond) {
			return nil
		}
	}
	return errStuck
}

func inBackground(f func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	return ended
}

func doneWithin(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// send passes an event on, unless the screen is closed.
func (s *Screen) send(e Event) {
	select {
	case s.events <- e:
	case <-s.done:
	}
}

// listen turns input and signals into events, until Close.
func (s *Screen) listen() {
	pasting := false
	for {
		select {
		case e := <-s.terminal.EventQ():
			switch e := e.(type) {
			case *tcell.EventKey:
				if k := keyOf(e); k != "" {
					s.send(Event{Key: k, Pasted: pasting})
				}
			case *tcell.EventPaste:
				pasting = e.Start()
			case *tcell.EventResize:
				s.send(Event{Redraw: true})
			case *tcell.EventError:
				s.send(Event{Gone: e})
			}
		case sig := <-s.signals:
			s.handleSignal(sig)
			s.send(Event{Redraw: true})
		case <-s.done:
			return
		}
	}
}

var keyNames = map[tcell.Key]Key{
	tcell.KeyEnter: "enter", tcell.KeyCtrlJ: "enter", tcell.KeyEscape: "esc", tcell.KeyBackspace: "backspace",
	tcell.KeyUp: "up", tcell.KeyDown: "down", tcell.KeyLeft: "left", tcell.KeyRight: "right",
	tcell.KeyHome: "home", tcell.KeyEnd: "end", tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdown",
}

// keyOf returns the key of an event, or "" for a key without use, such as one with Alt.
func keyOf(e *tcell.EventKey) Key {
	switch k := e.Key(); {
	case keyNames[k] != "":
		return keyNames[k]
	case k == tcell.KeyRune && e.Modifiers()&^tcell.ModShift == 0:
		return Key(e.Str())
	case k >= tcell.KeyCtrlA && k <= tcell.KeyCtrlZ:
		return "ctrl+" + Key('a'+rune(k-tcell.KeyCtrlA))
	}
	return ""
}
