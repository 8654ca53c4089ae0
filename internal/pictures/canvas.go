package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A canvas is an SVG in the making, in the colours of docs/fence.svg: dark ones where the
// reader's browser is dark. A later shape covers an earlier one.
type canvas struct{ b strings.Builder }

const width = 730 // of each picture, in points

// The words that a thing can have as its class:
//
//	dim, bold, small, tiny    of texts; and middle or end, where a text is anchored
//	bad, better, on           of texts: what fails, is better than Pawl, is on a bar
//	holds, waits, grey        of bars: a lease, a wait, and the lease of another client
//	ask, go, no               of lines and arrows: a request, a grant, what fails
//	line, dash, box           of lines: an axis, what is not solid, a frame
const style = `<style>
text{fill:#1f2328}.dim{fill:#59636e}.bold{font-weight:bold}.small{font-size:12px}.tiny{font-size:11px}.better{fill:#1a7f37;font-weight:bold}.bad{fill:#c4320a;font-weight:bold}.on{fill:#fff;font-weight:bold}
.holds{fill:#2a6f97}.grey{fill:#d1d9e0}.waits{fill:none;stroke:#2a6f97;stroke-width:1.5;stroke-dasharray:4 3}.box{fill:none;stroke:#d1d9e0;stroke-width:1.2}
.line{stroke:#8c959f;fill:none}.ask{stroke:#59636e;fill:none}.go{stroke:#2a6f97;stroke-width:1.6;fill:none}.no{stroke:#c4320a;stroke-width:2;fill:none}.dash{stroke-dasharray:2 3}
.tip{stroke:none}.tip.ask{fill:#59636e}.tip.go{fill:#2a6f97}.tip.no{fill:#c4320a}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}.dim{fill:#9198a1}.better{fill:#3fb950}.bad{fill:#ff8a65}.on{fill:#0d1117}
.holds{fill:#58a6d6}.grey{fill:#3d444d}.waits{stroke:#58a6d6}.box{stroke:#3d444d}
.line{stroke:#656c76}.ask{stroke:#9198a1}.go{stroke:#58a6d6}.no{stroke:#ff8a65}
.tip.ask{fill:#9198a1}.tip.go{fill:#58a6d6}.tip.no{fill:#ff8a65}}
</style>
`

// newCanvas begins a picture. The title and the description are for who cannot see it.
func newCanvas(height float64, title, description string) *canvas {
	return canvasOf(width, height, title, description)
}

// canvasOf is newCanvas with another width.
func canvasOf(width, height float64, title, description string) *canvas {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="13" role="img" aria-labelledby="t d">
<title id="t">%s</title>
<desc id="d">%s</desc>
%s`, width, height, html.EscapeString(title), html.EscapeString(description), style)
	return c
}

// String is the picture as a file.
func (c *canvas) String() string { return c.b.String() + "</svg>\n" }

// text writes at a point: the left end of the line, or its middle or end.
func (c *canvas) text(x, y float64, class, s string) {
	var classes, anchor string
	for word := range strings.FieldsSeq(class) {
		if word == "middle" || word == "end" {
			anchor = ` text-anchor="` + word + `"`
		} else {
			classes += " " + word
		}
	}
	if classes != "" {
		classes = ` class="` + classes[1:] + `"`
	}
	fmt.Fprintf(&c.b, `<text%s x="%s" y="%s"%s>%s</text>`+"\n", classes, short(x), short(y), anchor, html.EscapeString(s))
}

// rect is a bar without a text.
func (c *canvas) rect(class string, x, y, width, height, round float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`+"\n",
		class, short(x), short(y), short(width), short(height), short(round))
}

const barHeight = 26

// bar is a bar with a text in its middle.
func (c *canvas) bar(class string, x, y, width float64, textClass, s string) {
	c.rect(class, x, y, width, barHeight, 4)
	c.text(x+width/2, y+barHeight/2+5, textClass+" middle", s)
}

// line is a line from one point to another.
func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="M%s %sL%s %s"/>`+"\n", class, short(x1), short(y1), short(x2), short(y2))
}

// arrow is a line with a tip at its end, in the colour of the first of its classes.
func (c *canvas) arrow(class string, x1, y1, x2, y2 float64) {
	const long, wide = 8, 4
	sin, cos := math.Sincos(math.Atan2(y2-y1, x2-x1))
	x, y := x2-long*cos, y2-long*sin
	c.line(class, x1, y1, x, y)
	fmt.Fprintf(&c.b, `<path class="tip %s" d="M%s %sL%s %sL%s %sZ"/>`+"\n", strings.Fields(class)[0],
		short(x2), short(y2), short(x-wide*sin), short(y+wide*cos), short(x+wide*sin), short(y-wide*cos))
}

// cross draws the mark of a request that did nothing.
func (c *canvas) cross(x, y float64) {
	c.line("no", x-5, y-5, x+5, y+5)
	c.line("no", x+5, y-5, x-5, y+5)
}

// span is a bracket over a time, or below it with a negative height.
func (c *canvas) span(x1, x2, y, height float64) {
	fmt.Fprintf(&c.b, `<path class="line" d="M%s %sV%sH%sV%s"/>`+"\n", short(x1), short(y), short(y-height), short(x2), short(y))
}

// time is the axis of a time that has no numbers.
func (c *canvas) time(y float64) {
	c.arrow("ask", 96, y, width-26, y)
	c.text(96, y+18, "dim", "time")
}

// short is a number as it stands in an SVG.
func short(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}
