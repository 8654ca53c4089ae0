package main

import "strings"

// drawQuorum draws how five nodes, one of them down, agree on a fence. Real fences are
// longer numbers: microseconds.
func drawQuorum() *canvas {
	c := newCanvas(396, "A quorum of five nodes, one of them down, and how a fence gets through",
		"web-2 asks all five nodes. D is down; A and C give fence 108, B gives 109, and E gives 110. No number has a majority, so the highest, "+
			"110, is written back to A, B and C: four of five nodes have it, and web-2 holds with fence 110. Later A is down, and D is back, "+
			"which has missed all this. cron-1 asks: B, C and E have given 110, so they give 111. D gives 107, and 111 is written back to it.")
	const first, apart = 206, 106
	x := func(node int) float64 { return first + apart*float64(node) }
	for i, name := range []string{"A", "B", "C", "D", "E"} {
		c.text(x(i), 28, "bold middle", "node "+name)
	}
	row := func(y float64, who, what, class, fences string) {
		c.text(16, y+12, "bold", who)
		c.text(16, y+28, "dim", what)
		for i, fence := range strings.Fields(fences) {
			switch {
			case fence == "-":
				c.bar("waits", x(i)-38, y, 76, "dim", "down")
			case class == "holds":
				c.bar("holds", x(i)-38, y, 76, "on", fence)
			default:
				c.bar("grey", x(i)-38, y, 76, "", fence)
			}
		}
	}
	row(42, "web-2 asks,", "and each gives", "grey", "108 109 108 - 110")
	for node := range 3 {
		c.arrow("go", x(node), 70, x(node), 97)
	}
	row(98, "the highest", "is written back", "holds", "110 110 110 - 110")
	c.text(168, 150, "", "Four have exactly 110, and three are enough: web-2 holds, fence 110.")
	c.line("line dash", 16, 174, 714, 174)
	c.text(168, 200, "dim", "Later A is down, and D is back: it has missed all that, and its clock is behind.")
	row(216, "cron-1 asks,", "and each gives", "grey", "- 111 111 107 111")
	c.arrow("go", x(3), 244, x(3), 271)
	row(272, "the highest", "is written back", "holds", "- 111 111 111 111")
	c.text(168, 324, "", "cron-1 holds, fence 111.")
	c.text(16, 360, "dim", "Any two majorities have a node in common. It gave the first fence, and gives no number twice and")
	c.text(16, 379, "dim", "none that is lower than one before: so the second fence is greater, whatever the clocks show.")
	return c
}
