package main

// A stroke is one bar of a chart, and what is written beside it.
type stroke struct {
	label  string
	value  float64
	more   float64 // a second part of the bar, behind the first
	beside string
	ours   bool // is Pawl's
}

const (
	chartLeft    = 190 // where bars begin
	chartLongest = 330
	strokeApart  = 20
	groupApart   = 22
	groupHead    = 26
)

// groupHeight is how high a group of bars stands.
func groupHeight(strokes int) float64 { return groupHead + strokeApart*float64(strokes) + groupApart }

// group draws bars below a title, the longest of them as long as there is room for, and
// returns where the next group begins.
func (c *canvas) group(y float64, title string, strokes []stroke) float64 {
	most := 0.0
	for _, s := range strokes {
		most = max(most, s.value+s.more)
	}
	c.text(16, y+14, "bold", title)
	y += groupHead
	for _, s := range strokes {
		c.text(chartLeft-8, y+13, "end small", s.label)
		long := chartLongest * s.value / most
		all := chartLongest * (s.value + s.more) / most
		class := "grey"
		if s.ours {
			class = "holds"
		}
		if s.value+s.more > 0 {
			c.rect(class, chartLeft, y+1, max(long, 1), strokeApart-5, 2)
			if s.more > 0 {
				c.rect("grey", chartLeft+long, y+1, all-long, strokeApart-5, 2)
			}
		}
		c.text(chartLeft+max(all, 1)+7, y+13, "small", s.beside)
		y += strokeApart
	}
	return y + groupApart
}
