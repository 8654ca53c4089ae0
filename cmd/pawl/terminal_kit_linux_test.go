package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// An emulator is a terminal: a program writes to it, and it has the text that a person
// would see. It knows the few sequences that pawl and tcell send, and records all others.
// Many goroutines may use it.
type emulator struct {
	mu         sync.Mutex // protects all below
	width      int
	height     int
	main, alt  *page
	modes      map[string]bool // true for a mode that the program has changed
	pending    []byte          // the beginning of a sequence
	unexpected []string
}

// A page is one of the two screens of a terminal.
type page struct {
	cells [][]string // by rows; a wide character has an empty cell behind it
	x, y  int
}

func newEmulator(width, height int) *emulator {
	e := &emulator{width: width, height: height, modes: map[string]bool{}}
	e.main, e.alt = e.blank(), e.blank()
	return e
}

func (e *emulator) blank() *page {
	p := &page{}
	for range e.height {
		p.cells = append(p.cells, strings.Split(strings.Repeat(" ", e.width), ""))
	}
	return p
}

// resize changes the size of the terminal, and clears it.
func (e *emulator) resize(width, height int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.width, e.height = width, height
	e.main, e.alt = e.blank(), e.blank()
}

// text returns the text on the terminal, without the blanks at the ends of lines.
func (e *emulator) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, row := range e.page().cells {
		b.WriteString(strings.TrimRight(strings.Join(row, ""), " ") + "\n")
	}
	return b.String()
}

// changedModes lists the modes that the program has changed, and must restore.
func (e *emulator) changedModes() (modes []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for mode, changed := range e.modes {
		if changed {
			modes = append(modes, mode)
		}
	}
	return modes
}

// unexpectedOutput lists the output that a program should never send to a terminal.
func (e *emulator) unexpectedOutput() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unexpected
}

func (e *emulator) page() *page {
	if e.modes["?1049"] {
		return e.alt
	}
	return e.main
}

// Write handles a program's output, and never fails.
func (e *emulator) Write(sent []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending = append(e.pending, sent...)
	for len(e.pending) > 0 {
		n := e.handleFirst(e.pending)
		if n == 0 {
			break
		}
		e.pending = e.pending[n:]
	}
	return len(sent), nil
}

// handleFirst handles the first character or sequence, and returns its length, or 0 if it
// is not complete.
func (e *emulator) handleFirst(sent []byte) int {
	p := e.page()
	switch c := sent[0]; {
	case c == '\r':
		p.x = 0
	case c == '\n':
		e.moveDown(p)
	case c == '\b':
		p.x = max(0, p.x-1)
	case c == '\t' && p == e.main:
		p.x = min(p.x/8*8+8, e.width-1)
	case c == 0x1b:
		return e.escape(sent)
	case c < ' ' || c == 0x7f:
		e.unexpected = append(e.unexpected, fmt.Sprintf("%q", c))
	default:
		if !utf8.FullRune(sent) {
			return 0
		}
		r, n := utf8.DecodeRune(sent)
		e.putRune(p, r)
		return n
	}
	return 1
}

func (e *emulator) moveDown(p *page) {
	if p.y++; p.y == e.height {
		p.y--
		p.cells = append(p.cells[1:], e.blank().cells[0])
	}
}

func (e *emulator) putRune(p *page, r rune) {
	if unicode.In(r, unicode.Mn, unicode.Me) || r > 0x1160 && r <= 0x11ff { // it combines with the character before
		x := max(0, p.x-1)
		if x > 0 && p.cells[p.y][x] == "" {
			x--
		}
		p.cells[p.y][x] += string(r)
		return
	}
	if p.x >= e.width {
		if p == e.alt { // lines of the alternate screen do not wrap
			p.x = e.width - 1
		} else {
			p.x = 0
			e.moveDown(p)
		}
	}
	p.cells[p.y][p.x] = string(r)
	p.x++
	if k := width.LookupRune(r).Kind(); (k == width.EastAsianWide || k == width.EastAsianFullwidth) && p.x < e.width {
		p.cells[p.y][p.x] = ""
		p.x++
	}
}

// Sequences: a control with its parameters and its last character; a sequence that is not
// complete; a character set, a mode of the keypad, or the end of a link.
var (
	controlSequence    = regexp.MustCompile(`^\x1b\[([0-?]*)([ -/]*[@-~])`)
	unfinishedSequence = regexp.MustCompile(`^\x1b(\[[0-?]*[ -/]*|[\]P][^\x1b\a]*\x1b?|[()]?)$`)
	ignoredSequence    = regexp.MustCompile(`^\x1b([()][B0]|[=>]|\]8;;\x1b\\)`)
)

// escape handles an escape sequence.
func (e *emulator) escape(sent []byte) int {
	if unfinishedSequence.Match(sent) {
		return 0
	}
	if m := controlSequence.FindSubmatch(sent); m != nil {
		e.handleControl(string(m[1]), string(m[2]))
		return len(m[0])
	}
	if m := ignoredSequence.Find(sent); m != nil {
		return len(m)
	}
	e.unexpected = append(e.unexpected, fmt.Sprintf("%q", sent[:2]))
	return 1
}

func (e *emulator) handleControl(parameters, final string) {
	p := e.page()
	switch {
	case final == "m":
		e.modes["style"] = parameters != "" && parameters != "0"
	case final == "H":
		y, x, _ := strings.Cut(parameters, ";")
		p.y, p.x = min(oneOrMore(y), e.height)-1, min(oneOrMore(x), e.width)-1
	case final == "J":
		p.cells = e.blank().cells
	case final == "K" && parameters == "":
		for x := p.x; x < e.width; x++ {
			p.cells[p.y][x] = " "
		}
	case final == "h" || final == "l":
		e.setMode(parameters, final == "h")
	case final == "t" && (parameters == "22;2" || parameters == "23;2"): // the title is kept, and restored
	default:
		e.unexpected = append(e.unexpected, "CSI "+parameters+final)
	}
}

func (e *emulator) setMode(which string, on bool) {
	switch which {
	case "?1049":
		if on {
			e.alt = e.blank()
		}
	case "?1", "?2004": // the codes of the cursor keys, and marks of pasted text
	case "?25", "?7": // a visible cursor, and lines that wrap: a shell has both
		on = !on
	case "?2026": // the beginning or the end of a frame
		return
	case "?1000", "?1002", "?1003", "?1006", "?1004", "?1016": // the mouse and the focus
		if !on {
			return
		}
		fallthrough
	default:
		e.unexpected = append(e.unexpected, fmt.Sprintf("mode %s: %t", which, on))
	}
	e.modes[which] = on
}

func oneOrMore(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
