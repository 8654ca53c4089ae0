package main

// A chartBar is one bar of a chart, with the texts beside it.
type chartBar struct {
	label    string
	value    float64
	second   float64 // a second part of the bar, behind the first
	note     string
	ratio    string // how many times as good as Pawl
	isBetter bool   // than Pawl
	isPawl   bool
}

const (
	chartLeft   = 190 // where bars begin
	maxBarWidth = 330
	barStep     = 20
	groupGap    = 22
	groupHead   = 26
)

// groupHeight returns the height of a group of bars.
func groupHeight(bars int) float64 { return groupHead + barStep*float64(bars) + groupGap }

// group draws bars below a title, the longest of them maxBarWidth long, and returns where
// the next group begins.
func (c *canvas) group(y float64, title string, bars []chartBar) float64 {
	longest := 0.0
	for _, s := range bars {
		longest = max(longest, s.value+s.second)
	}
	c.text(16, y+14, "bold", title)
	y += groupHead
	for _, s := range bars {
		c.text(chartLeft-8, y+13, "end small", s.label)
		barWidth := maxBarWidth * s.value / longest
		totalWidth := maxBarWidth * (s.value + s.second) / longest
		class := "grey"
		if s.isPawl {
			class = "holds"
		}
		if s.value+s.second > 0 {
			c.rect(class, chartLeft, y+1, max(barWidth, 1), barStep-5, 2)
			if s.second > 0 {
				c.rect("grey", chartLeft+barWidth, y+1, totalWidth-barWidth, barStep-5, 2)
			}
		}
		c.text(chartLeft+max(totalWidth, 1)+7, y+13, "small", s.note)
		y += barStep
	}
	return y + groupGap
}

// A panel is a group of bars in a grid, so that a chart fits a screen.
type panel struct {
	title, unit string
	bars        []chartBar
}

const (
	panelRow    = 17
	panelHead   = 40
	panelGap    = 14
	panelMargin = 16
	gridWidth   = 900
)

// panelHeight returns the height of a panel in a grid.
func panelHeight(bars int) float64 { return panelHead + panelRow*float64(bars) + panelGap }

// grid draws panels side by side, row by row, and returns where the last row ends.
func (c *canvas) grid(y float64, columns int, label float64, panels []panel) float64 {
	panelWidth := (gridWidth - 2*panelMargin) / float64(columns)
	for i := 0; i < len(panels); i += columns {
		row := panels[i:min(i+columns, len(panels))]
		maxBars := 0
		for k, p := range row {
			c.panel(panelMargin+panelWidth*float64(k), y, panelWidth, label, p)
			maxBars = max(maxBars, len(p.bars))
		}
		y += panelHeight(maxBars)
	}
	return y
}

func (c *canvas) panel(x, y, panelWidth, label float64, p panel) {
	const figuresWidth = 112 // of a figure and a ratio
	longest := 0.0
	for _, s := range p.bars {
		longest = max(longest, s.value)
	}
	c.text(x, y+13, "bold", p.title)
	c.text(x, y+30, "small dim", p.unit)
	y += panelHead
	for _, s := range p.bars {
		c.text(x+label-6, y+11, "end tiny", s.label)
		class := "grey"
		if s.isPawl {
			class = "holds"
		}
		barWidth := 0.0
		if s.value > 0 {
			barWidth = max((panelWidth-label-figuresWidth)*s.value/longest, 1)
			c.rect(class, x+label, y, barWidth, panelRow-4, 2)
		}
		c.text(x+label+barWidth+5, y+11, "tiny", s.note)
		class = "end tiny dim"
		if s.isBetter {
			class = "end tiny better"
		}
		c.text(x+panelWidth-12, y+11, class, s.ratio)
		y += panelRow
	}
}
