package screen

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/text/unicode/bidi"

	"github.com/pawl-go/pawl/internal/visible"
)

// maxMarks is the number of marks that a character keeps. No language needs more. Text
// that an attacker made to cover the lines around it has dozens.
const maxMarks = 2

// Clean returns a text as the screen shows it. In addition to what visible.Text escapes,
// it escapes:
//
//   - right-to-left script: many terminals reverse a line that has any, so that a fence
//     would be next to the wrong holder;
//   - marks without a character before them, and marks beyond maxMarks.
//
// Escaped text stays unchanged, so escaping it twice does no harm.
func Clean(s string) string {
	var b strings.Builder
	marksLeft := 0 // the number of further marks for the previous character
	for _, r := range visible.Text(s) {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me) && marksLeft > 0:
			marksLeft--
		case unicode.In(r, unicode.Mn, unicode.Me), isRightToLeft(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			marksLeft = 0
			continue
		case r == ' ':
			marksLeft = 0
		default:
			marksLeft = maxMarks
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isRightToLeft(r rune) bool {
	properties, _ := bidi.LookupRune(r)
	switch properties.Class() {
	case bidi.R, bidi.AL, bidi.AN:
		return true
	default:
		return false
	}
}

// Width returns the number of cells that a text takes on the screen.
func Width(s string) int { return displaywidth.String(Clean(s)) }

// Cut returns a text as the screen shows it, cut to that many cells. A cut text ends with
// an ellipsis.
func Cut(s string, cells int) string {
	if cells <= 0 {
		return ""
	}
	return displaywidth.TruncateString(Clean(s), cells, "…")
}

// Pad cuts a text to that many cells, or fills them with blanks.
func Pad(s string, cells int) string {
	s = Cut(s, cells)
	return s + strings.Repeat(" ", max(0, cells-displaywidth.String(s)))
}

// A Style is the appearance of a text. Styles are combined with |.
type Style uint8

// The styles. No meaning depends on a colour alone: some terminals have no colours, and
// some people do not see them.
const (
	Bold Style = 1 << iota
	Dim
	Reverse
	Red
	Green
	Yellow
)

// A Span is text in one style.
type Span struct {
	Text  string
	Style Style
}

// A Line is a line of the screen. The screen cuts what does not fit.
type Line []Span

// Text returns a line in one style.
func Text(s string, style Style) Line { return Line{{s, style}} }
