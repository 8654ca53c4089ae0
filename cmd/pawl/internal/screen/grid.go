package screen

import (
	"bytes"
	"fmt"
)

// A cell is one place of the screen. The second half of a wide character has no text.
type cell struct {
	text  string
	style Style
}

// A grid is a whole screen.
type grid struct {
	width, height int
	cells         []cell // row by row
}

func newGrid(width, height int) *grid {
	g := &grid{width: width, height: height, cells: make([]cell, width*height)}
	for i := range g.cells {
		g.cells[i].text = " "
	}
	return g
}

// layOut puts lines on a screen, and drops what does not fit.
func layOut(lines []Line, width, height int) *grid {
	g := newGrid(width, height)
	for y, line := range lines[:min(len(lines), height)] {
		x := 0
		for _, span := range line {
			for c := range clusters(span.Text) {
				if x+c.width > width {
					x = width // half of a wide character is not shown
					break
				}
				g.cells[y*width+x] = cell{c.text, span.Style}
				if c.width == 2 {
					g.cells[y*width+x+1] = cell{"", span.Style}
				}
				x += c.width
			}
		}
	}
	return g
}

// difference writes the changes that turn one screen into another of the same size. After
// a character that is not ASCII, terminals disagree about the position of the cursor. So
// difference sets it again, and a wrong width damages only the next character, not the
// line.
func difference(b *bytes.Buffer, from, to *grid) {
	style, at := Style(0), -1 // at is the cell at the cursor; -1: unknown
	begun := false
	for i, c := range to.cells {
		if c == from.cells[i] || c.text == "" {
			continue
		}
		if !begun {
			b.WriteString("\x1b[0m")
			begun = true
		}
		if at != i {
			fmt.Fprintf(b, "\x1b[%d;%dH", i/to.width+1, i%to.width+1)
		}
		if c.style != style {
			b.WriteString(c.style.sequence())
			style = c.style
		}
		b.WriteString(c.text)
		if at = i + 1; len(c.text) > 1 || at%to.width == 0 {
			at = -1
		}
	}
	if style != 0 {
		b.WriteString("\x1b[0m")
	}
}

// without removes styles.
func (g *grid) without(styles Style) {
	for i := range g.cells {
		g.cells[i].style &^= styles
	}
}
