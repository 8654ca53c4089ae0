package main

// drawLost draws how the client notifies a holder of the loss of its lease before the
// server grants the name again, with the default TTL of 30 s and its margin of a tenth.
func drawLost() *canvas {
	c := newCanvas(376, "How the client notifies a holder that it lost its lease, before another client gets the name",
		"With a TTL of 30 seconds. web-3 is granted the name, and renews its lease after 10 seconds. Then the backend is out of its reach. "+
			"Its term ends 27 seconds after that renewal was sent, at second 37: then the client notifies it that the lease is lost. "+
			"The backend keeps the lease for 30 seconds from when the renewal came, until second 40, and then grants the name to cron-1. "+
			"The 3 seconds between are for web-3 to stop.")
	at := func(second float64) float64 { return 90 + 13.6*second }
	const client, backend, next = 88, 202, 270
	const slow = 6 // what a request takes, in points
	ends := at(40) + slow
	c.text(16, client+17, "bold", "web-3")
	c.text(16, backend+10, "bold", "the")
	c.text(16, backend+26, "bold", "backend")
	c.text(16, next+17, "bold", "cron-1")

	c.bracket(at(10), at(37), 46, 6)
	c.text(at(22), 34, "dim middle", "term: 27 s from when the renewal was sent")
	c.rect("grey", at(36), client, ends-at(36), barHeight, 4)
	c.rect("holds", at(0), client, at(37)-at(0), barHeight, 4)
	c.text(at(10), client+18, "on middle", "holds, fence 43")
	c.text(at(28.5), client+18, "on middle", "still trusts its lease")
	c.line("no", at(37), 72, at(37), client+34)
	c.text(at(37), 66, "bad middle", "told: lost")
	c.text(ends+8, client+18, "dim", "stopped")

	c.arrow("ask", at(0), client+28, at(0)+slow, backend-4)
	c.text(at(0)+14, 152, "dim", "asks")
	c.arrow("ask", at(10), client+28, at(10)+slow, backend-4)
	c.text(at(10)+14, 152, "dim", "renews")
	for _, second := range []float64{20, 23.5, 27, 30.5, 34} {
		c.line("no", at(second), client+30, at(second)+3, client+58)
		c.cross(at(second)+4, client+68)
	}
	c.text(at(27.5), client+96, "bad middle", "renewals that nobody answers")

	c.bar("holds", at(0)+slow, backend, ends-at(0)-slow, "on", "keeps the lease of web-3")
	c.bracket(at(10)+slow, ends, backend+32, -6)
	c.text(at(25), backend+55, "dim middle", "TTL: 30 s from when the renewal came")
	c.bar("waits", at(4), next, ends-at(4)-2, "dim", "waits")
	c.bar("holds", ends, next, at(45)-ends, "on small", "44")
	c.line("line dash", ends, client-30, ends, next+36)

	const axis = 318
	c.line("line", at(0), axis, at(45), axis)
	for _, tick := range []struct {
		second float64
		label  string
	}{{0, "0 s"}, {10, "10"}, {20, "20"}, {37, "37"}, {40, "40"}} {
		c.line("line", at(tick.second), axis-4, at(tick.second), axis+4)
		c.text(at(tick.second), axis+19, "dim middle", tick.label)
	}
	c.text(at(0), axis+45, "dim", "The margin between the two ends, a tenth of the TTL, is for the work to stop.")
	return c
}
