// Package screentest is a terminal for tests: it takes what a program writes, and has
// what a person would see. It knows the few sequences that package screen sends, and
// records any other.
package screentest

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Terminal is a terminal that a program writes to. Its methods may be called from any
// goroutine.
type Terminal struct {
	mu        sync.Mutex // protects all below
	width     int
	height    int
	main, alt *page
	onAlt     bool
	hidden    bool // the cursor
	pasting   bool // pasted text is marked
	style     string
	pending   []byte // the beginning of a sequence
	odd       []string
	frames    int
}

// A page is one of the two screens of a terminal.
type page struct {
	cells  [][]string // by rows; "" behind a wide character
	styles [][]string
	x, y   int
}

// New makes a terminal with that many columns and rows.
func New(width, height int) *Terminal {
	t := &Terminal{width: width, height: height, style: "0"}
	t.main, t.alt = t.blank(), t.blank()
	return t
}

func (t *Terminal) blank() *page {
	p := &page{cells: make([][]string, t.height), styles: make([][]string, t.height)}
	for y := range p.cells {
		p.cells[y], p.styles[y] = make([]string, t.width), make([]string, t.width)
		for x := range p.cells[y] {
			p.cells[y][x] = " "
		}
	}
	return p
}

// Resize changes the size of the terminal, and clears it.
func (t *Terminal) Resize(width, height int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.width, t.height = width, height
	t.main, t.alt = t.blank(), t.blank()
}

// Text is the text on the terminal, without the blanks at the ends of lines.
func (t *Terminal) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, row := range t.page().cells {
		b.WriteString(strings.TrimRight(strings.Join(row, ""), " ") + "\n")
	}
	return b.String()
}

// Style is the style of the cell at which the text begins: the numbers of the sequence
// that set it ("0;1;31"), or "" if the text is not shown.
func (t *Terminal) Style(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.page()
	for y, row := range p.cells {
		for x := range row {
			if strings.HasPrefix(strings.Join(row[x:], ""), text) {
				return p.styles[y][x]
			}
		}
	}
	return ""
}

// State lists the modes that a program has set, and must undo before its end.
func (t *Terminal) State() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var s []string
	for _, mode := range []struct {
		is   bool
		name string
	}{{t.onAlt, "alternate screen"}, {t.hidden, "no cursor"}, {t.pasting, "paste is marked"}, {t.style != "0", "style " + t.style}} {
		if mode.is {
			s = append(s, mode.name)
		}
	}
	return strings.Join(s, ", ")
}

// Odd lists what was written that a program should never send to a terminal.
func (t *Terminal) Odd() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.odd
}

// Frames returns the number of frames that were drawn.
func (t *Terminal) Frames() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.frames
}

func (t *Terminal) page() *page {
	if t.onAlt {
		return t.alt
	}
	return t.main
}

// Write takes what a program writes, and never fails.
func (t *Terminal) Write(sent []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, sent...)
	for len(t.pending) > 0 {
		n := t.take(t.pending)
		if n == 0 {
			break
		}
		t.pending = t.pending[n:]
	}
	return len(sent), nil
}

// take handles the first character or sequence, and returns its length: 0 if it is not
// complete.
func (t *Terminal) take(sent []byte) int {
	p := t.page()
	switch c := sent[0]; {
	case c == '\r':
		p.x = 0
	case c == '\n':
		t.down(p)
	case c == '\b':
		p.x = max(0, p.x-1)
	case c == '\t' && !t.onAlt:
		p.x = min(p.x/8*8+8, t.width-1)
	case c == 0x1b:
		return t.escape(sent)
	case c < ' ' || c == 0x7f:
		t.odd = append(t.odd, fmt.Sprintf("%q", c))
	default:
		if !utf8.FullRune(sent) {
			return 0
		}
		r, n := utf8.DecodeRune(sent)
		t.put(p, r)
		return n
	}
	return 1
}

func (t *Terminal) down(p *page) {
	if p.y++; p.y == t.height {
		p.y--
		fresh := t.blank()
		p.cells = append(p.cells[1:], fresh.cells[0])
		p.styles = append(p.styles[1:], fresh.styles[0])
	}
}

func (t *Terminal) put(p *page, r rune) {
	if unicode.In(r, unicode.Mn, unicode.Me) || r > 0x1160 && r <= 0x11ff { // it combines with the character before
		x := max(0, p.x-1)
		if x > 0 && p.cells[p.y][x] == "" {
			x--
		}
		p.cells[p.y][x] += string(r)
		return
	}
	wide := false
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		wide = true
	}
	if p.x >= t.width {
		if t.onAlt { // lines of the alternate screen do not wrap
			p.x = t.width - 1
		} else {
			p.x = 0
			t.down(p)
		}
	}
	p.cells[p.y][p.x], p.styles[p.y][p.x] = string(r), t.style
	p.x++
	if wide && p.x < t.width {
		p.cells[p.y][p.x], p.styles[p.y][p.x] = "", t.style
		p.x++
	}
}

// escape handles an escape sequence.
func (t *Terminal) escape(sent []byte) int {
	if len(sent) < 2 {
		return 0
	}
	if sent[1] == 0x1b {
		return 1
	}
	if sent[1] != '[' {
		t.odd = append(t.odd, fmt.Sprintf("%q", sent[:2]))
		return 2
	}
	for i := 2; i < len(sent); i++ {
		switch c := sent[i]; {
		case c == 0x1b: // a new sequence begins: this one was cut off
			return i
		case c >= 0x40 && c <= 0x7e:
			t.control(string(sent[2:i]), c)
			return i + 1
		}
	}
	return 0
}

func (t *Terminal) control(parameters string, final byte) {
	p := t.page()
	switch {
	case final == 'm':
		if t.style = parameters; parameters == "" {
			t.style = "0"
		}
	case final == 'H':
		y, x, _ := strings.Cut(parameters, ";")
		p.y, p.x = min(number(y), t.height)-1, min(number(x), t.width)-1
	case final == 'J' && parameters == "2":
		fresh := t.blank()
		p.cells, p.styles = fresh.cells, fresh.styles
	case final == 'K' && parameters == "":
		for x := p.x; x < t.width; x++ {
			p.cells[p.y][x] = " "
		}
	case (final == 'h' || final == 'l') && t.mode(parameters, final == 'h'):
	default:
		t.odd = append(t.odd, fmt.Sprintf("CSI %s%c", parameters, final))
	}
}

func (t *Terminal) mode(which string, on bool) (known bool) {
	switch which {
	case "?1049":
		if t.onAlt = on; on {
			t.alt = t.blank()
		}
	case "?25":
		t.hidden = !on
	case "?2004":
		t.pasting = on
	case "?2026":
		if !on {
			t.frames++
		}
	case "?7": // part of the alternate screen: its lines do not wrap
	default:
		return false
	}
	return true
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
