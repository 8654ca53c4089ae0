package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A canvas collects the shapes of an SVG. It has the colours of docs/fence.svg, and other
// colours for a browser in dark mode. A later shape covers an earlier one.
type canvas struct{ b strings.Builder }

const width = 730 // of each picture, in points

// The classes of shapes:
//
//	dim, bold, small, tiny    a text with this look
//	middle, end               a text that has its middle or its end at the point
//	bad, better, on           a failure, a figure better than Pawl's, a text on a bar
//	holds, waits, grey        a bar: a lease, a wait, the lease of another client
//	ask, go, no               a line or an arrow: a request, a grant, a failure
//	line, dash, box           an axis, a dashed line, a frame
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

// newCanvas begins a picture. Screen readers read its title and description aloud.
func newCanvas(height float64, title, description string) *canvas {
	return newCanvasOfWidth(width, height, title, description)
}

// newCanvasOfWidth begins a picture of another width.
func newCanvasOfWidth(width, height float64, title, description string) *canvas {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="13" role="img" aria-labelledby="t d">
<title id="t">%s</title>
<desc id="d">%s</desc>
%s`, width, height, html.EscapeString(title), html.EscapeString(description), style)
	return c
}

// String returns the text of the SVG file.
func (c *canvas) String() string { return c.b.String() + "</svg>\n" }

// text writes a line that begins at a point, or has its middle or its end there.
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
	fmt.Fprintf(&c.b, `<text%s x="%s" y="%s"%s>%s</text>`+"\n", classes, svgNumber(x), svgNumber(y), anchor, html.EscapeString(s))
}

// rect draws a bar without a text.
func (c *canvas) rect(class string, x, y, width, height, round float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`+"\n",
		class, svgNumber(x), svgNumber(y), svgNumber(width), svgNumber(height), svgNumber(round))
}

const barHeight = 26

// bar draws a bar with a text in its middle.
func (c *canvas) bar(class string, x, y, width float64, textClass, s string) {
	c.rect(class, x, y, width, barHeight, 4)
	c.text(x+width/2, y+barHeight/2+5, textClass+" middle", s)
}

// line draws a line from one point to another.
func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="M%s %sL%s %s"/>`+"\n", class, svgNumber(x1), svgNumber(y1), svgNumber(x2), svgNumber(y2))
}

// arrow draws a line with a tip at its end, in the colour of the first of its classes.
func (c *canvas) arrow(class string, x1, y1, x2, y2 float64) {
	const long, wide = 8, 4
	sin, cos := math.Sincos(math.Atan2(y2-y1, x2-x1))
	x, y := x2-long*cos, y2-long*sin
	c.line(class, x1, y1, x, y)
	fmt.Fprintf(&c.b, `<path class="tip %s" d="M%s %sL%s %sL%s %sZ"/>`+"\n", strings.Fields(class)[0],
		svgNumber(x2), svgNumber(y2), svgNumber(x-wide*sin), svgNumber(y+wide*cos), svgNumber(x+wide*sin), svgNumber(y-wide*cos))
}

// cross draws the mark of a request that did nothing.
func (c *canvas) cross(x, y float64) {
	c.line("no", x-5, y-5, x+5, y+5)
	c.line("no", x+5, y-5, x-5, y+5)
}

// bracket draws a bracket that marks the time from x1 to x2. With a negative height, it
// opens upwards.
func (c *canvas) bracket(x1, x2, y, height float64) {
	fmt.Fprintf(&c.b, `<path class="line" d="M%s %sV%sH%sV%s"/>`+"\n", svgNumber(x1), svgNumber(y), svgNumber(y-height), svgNumber(x2), svgNumber(y))
}

// timeAxis draws a time axis without numbers.
func (c *canvas) timeAxis(y float64) {
	c.arrow("ask", 96, y, width-26, y)
	c.text(96, y+18, "dim", "time")
}

// svgNumber formats a number for an SVG, with at most one decimal.
func svgNumber(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}
