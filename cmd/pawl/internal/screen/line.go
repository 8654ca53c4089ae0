package screen

import "strings"

// A Style is the look of a text. Styles are combined with |.
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

// colors are the styles that NO_COLOR turns off.
const colors = Red | Green | Yellow

// sequence returns the escape sequence that sets a style, and unsets every other.
func (s Style) sequence() string {
	codes := "\x1b[0"
	for _, c := range []struct {
		style Style
		code  string
	}{{Bold, ";1"}, {Dim, ";2"}, {Reverse, ";7"}, {Red, ";31"}, {Green, ";32"}, {Yellow, ";33"}} {
		if s&c.style != 0 {
			codes += c.code
		}
	}
	return codes + "m"
}

// A Span is text in one style.
type Span struct {
	Text  string
	Style Style
}

// A Line is a line of the screen. The screen cuts what does not fit.
type Line []Span

// Text is a line in one style.
func Text(s string, style Style) Line { return Line{{s, style}} }

// Plain returns lines as text, as a screen of that size shows them, without the blanks at
// the ends of lines.
func Plain(lines []Line, width, height int) string {
	g := layOut(lines, width, height)
	var b strings.Builder
	for y := range g.height {
		var row strings.Builder
		for x := range g.width {
			row.WriteString(g.cells[y*g.width+x].text)
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return b.String()
}
