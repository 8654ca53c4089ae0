package screen

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/width"
)

// A cluster is the content of one or two cells of the terminal: a character and the marks
// on it.
type cluster struct {
	text  string
	width int // 1 or 2
}

// mostMarks is the number of marks that a character keeps. No language needs more; text
// that was made to spill over the lines around it has dozens.
const mostMarks = 2

// clusters yields the parts of a text as the screen shows them. They are always
// printable: the rest is escaped, a cell for each character of the escape. What is
// escaped:
//
//   - controls and their sequences: they would move the cursor, set colours, or write to
//     the clipboard;
//   - bytes that are not UTF-8;
//   - invisible characters, and those that set a direction;
//   - right-to-left script: many terminals reverse a line that has any, so that a fence
//     would be beside another holder than its own;
//   - marks without a character before them, and marks beyond mostMarks.
//
// Escaped text stays unchanged, so escaping it twice does no harm.
func clusters(s string) iter.Seq[cluster] {
	return func(yield func(cluster) bool) {
		for len(s) > 0 {
			r, n := utf8.DecodeRuneInString(s)
			if !shows(r, n) || isMark(r) {
				for _, c := range escaped(r, s[:n]) {
					if !yield(cluster{string(c), 1}) {
						return
					}
				}
				s = s[n:]
				continue
			}
			c := cluster{width: columns(r)}
			for range mostMarks {
				m, size := utf8.DecodeRuneInString(s[n:])
				if r == ' ' || !shows(m, size) || !isMark(m) {
					break
				}
				n += size
			}
			c.text, s = s[:n], s[n:]
			if !yield(c) {
				return
			}
		}
	}
}

// shows reports whether a character may reach the terminal.
func shows(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size <= 1:
		return false
	case r < utf8.RuneSelf:
		return r >= ' ' && r < 0x7f
	case !unicode.IsPrint(r):
		return false
	}
	switch r {
	case 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800: // letters by their class, but invisible
		return false
	}
	p, _ := bidi.LookupRune(r)
	switch p.Class() {
	case bidi.R, bidi.AL, bidi.AN:
		return false
	default:
		return true
	}
}

// isMark reports whether a character combines with the one before it: accents, and the
// vowels and finals of decomposed Korean.
func isMark(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me) || r > 0x1160 && r <= 0x11ff
}

// columns returns the number of cells that a character takes.
func columns(r rune) int {
	if r < 0x1100 {
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// escaped is the escape for a character that must not reach the terminal.
func escaped(r rune, text string) string {
	if r == utf8.RuneError && len(text) == 1 {
		return fmt.Sprintf(`\x%02x`, text[0])
	}
	q := strconv.QuoteRuneToASCII(r)
	return q[1 : len(q)-1]
}

// Clean is a text as the screen shows it: what must not reach the terminal is escaped.
func Clean(s string) string {
	var b strings.Builder
	for c := range clusters(s) {
		b.WriteString(c.text)
	}
	return b.String()
}

// Width returns the number of cells that a text takes on the screen.
func Width(s string) (n int) {
	for c := range clusters(s) {
		n += c.width
	}
	return n
}

// Cut is a text as the screen shows it in at most that many cells. A longer text ends
// with an ellipsis.
func Cut(s string, most int) string {
	text, _ := cut(s, most)
	return text
}

func cut(s string, most int) (text string, width int) {
	var b strings.Builder
	short, atShort := 0, 0 // where to cut to leave room for the ellipsis
	for c := range clusters(s) {
		if width+c.width > most {
			if most <= 0 {
				return "", 0
			}
			return b.String()[:short] + "…", atShort + 1
		}
		b.WriteString(c.text)
		if width += c.width; width < most {
			short, atShort = b.Len(), width
		}
	}
	return b.String(), width
}

// Pad cuts a text to that many cells, or fills them with blanks.
func Pad(s string, cells int) string {
	text, width := cut(s, cells)
	return text + strings.Repeat(" ", max(0, cells-width))
}
