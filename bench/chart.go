package main

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// drawChart draws the first figures of some scenarios as bars in an SVG, each scenario on
// its own scale.
func drawChart(w io.Writer, measured []measurement) {
	const left, width, row, gap = 150, 420, 18, 34
	height := 10
	for _, m := range measured {
		height += gap + row*len(m.results)
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<style>text{fill:#222}.bar{fill:#9db4c0}.pawl{fill:#2a6f97}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>
`, left+width+210, height)
	y := 10
	for _, m := range measured {
		unit := m.scenario.unit
		if !m.scenario.moreIsBetter {
			unit += ", less is better"
		}
		fmt.Fprintf(w, `<text x="4" y="%d" font-weight="bold">%s (%s)</text>`+"\n", y+16, html.EscapeString(m.scenario.description), html.EscapeString(unit))
		y += 24
		maximum := 0.0
		for _, r := range m.results {
			if r.err == nil {
				maximum = max(maximum, r.medians[0])
			}
		}
		for _, r := range m.results {
			class, value, label := "bar", 0.0, "failed"
			if r.err == nil {
				value, label = r.medians[0], threeDigits(r.medians[0])+m.scenario.besideBar(r.medians)
			}
			if r.contender == "pawl" {
				class = "bar pawl"
			}
			length := 1 + int(value/max(maximum, 1e-9)*width)
			fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text><rect class="%s" x="%d" y="%d" width="%d" height="%d"/><text x="%d" y="%d">%s</text>`+"\n",
				left-6, y+13, html.EscapeString(r.contender), class, left, y+2, length, row-4, left+length+5, y+13, label)
			y += row
		}
		y += gap - 24
	}
	fmt.Fprintln(w, "</svg>")
}

// besideBar returns the text of the further figures beside a bar of the chart.
func (s scenario) besideBar(f figures) string {
	var b strings.Builder
	for i, what := range s.otherFigures {
		if slices.Contains(s.chartFigures, what) {
			fmt.Fprintf(&b, ", %s %s", what, threeDigits(f[1+i]))
		}
	}
	return b.String()
}
