package main

// drawClaim draws the life of a claim without failures.
func drawClaim() *canvas {
	c := newCanvas(306, "The life of a claim",
		"web-3 asks for a name that web-2 holds. It gets a place in the queue, and keeps it by asking again. When web-2 releases, "+
			"the backend passes the name on to web-3, with fence 43, and tells it so. web-3 renews its lease at a third of its TTL, "+
			"and again, and releases it. cron-1, which waited behind it, is granted the name with fence 44.")
	const client, backend = 58, 176
	c.text(16, client+17, "bold", "web-3")
	c.text(16, backend+10, "bold", "the")
	c.text(16, backend+26, "bold", "backend")

	const asks, granted, released = 110, 300, 600
	c.bar("waits", asks, client, granted-asks-2, "dim", "waits")
	c.bar("holds", granted, client, released-granted, "on", "holds, fence 43")
	c.bar("grey", 96, backend, granted-98, "", "web-2 holds, fence 42")
	c.bar("holds", granted, backend, released-granted, "on", "web-3 holds, fence 43")
	c.bar("grey", released+2, backend, 102, "", "cron-1, 44")

	ask := func(x, from float64, what string) {
		c.text(x, 28, "middle", what)
		c.line("line dash", x, 34, x, client-2)
		c.arrow("ask", x, from, x, backend-4)
	}
	c.text(94, 28, "", "asks")
	c.arrow("ask", asks, 34, asks, backend-4)
	c.text(asks+8, 150, "dim", "place 1")
	c.text(210, 28, "middle", "keeps its place")
	for _, x := range []float64{180, 240} {
		c.line("line dash", x, 34, x, client-2)
		c.arrow("ask", x, client+28, x, backend-4)
	}
	c.arrow("go", granted+2, backend, granted+2, client+29)
	c.text(granted+12, 124, "", "granted,")
	c.text(granted+12, 141, "", "fence 43")
	ask(400, client+28, "renews")
	ask(500, client+28, "renews")
	ask(released, client+28, "releases")

	c.text(granted, backend+46, "dim middle", "web-2 has released:")
	c.text(granted, backend+63, "dim middle", "the head of the queue is granted")
	c.text(released, backend+46, "dim middle", "the next one is granted")
	c.text(released, backend+63, "dim middle", "in the step of the release")
	c.timeAxis(272)
	return c
}
