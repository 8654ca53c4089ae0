package main

// drawEnd draws the reasons for two rules: a request has an end, and a client that gives
// up releases twice.
func drawEnd() *canvas {
	c := newCanvas(342, "A request that comes after its end changes nothing",
		"A client asks for a name, and says that the request ends at second 5. At second 2 its caller gives up, and the client releases at once. "+
			"If the request is slow, and comes at second 3.4, after that release and before its end, the name is granted for nobody, "+
			"and the second release, sent after the end, takes it back. If it comes at second 6.5, after its end, it changes nothing.")
	at := func(second float64) float64 { return 96 + 82*second }
	const client, backend = 68, 228
	c.text(16, client+4, "bold", "client")
	c.text(16, backend-4, "bold", "the")
	c.text(16, backend+12, "bold", "backend")
	c.line("line", 96, client, 704, client)
	c.line("line", 96, backend, 704, backend)
	c.line("line dash", at(5), 30, at(5), backend+62)
	c.text(at(5), backend+78, "bold middle", "the end: 5.0 s")

	asked, gaveUp, after := at(0.25), at(2), at(5.3)
	c.text(asked, 34, "", "asks:")
	c.text(asked, 52, "", "“until 5.0 s”")
	c.text(gaveUp, 34, "middle", "gives up,")
	c.text(gaveUp, 52, "middle", "releases at once")
	c.text(after, 34, "", "releases once more,")
	c.text(after, 52, "dim", "0.25 s after the end")

	c.arrow("ask dash", asked, client, at(3.4), backend-2)
	c.arrow("no dash", asked, client, at(6.5), backend-8)
	c.arrow("ask", gaveUp, client, at(2.3), backend-2)
	c.arrow("ask", after, client, at(5.6), backend-2)
	for _, x := range []float64{asked, gaveUp, after} {
		c.rect("tip ask", x-4, client-4, 8, 8, 4)
	}
	c.text(at(2.2), 206, "dim end", "finds nothing")
	c.text(at(3.42), 206, "dim", "it comes late")
	c.bar("grey", at(3.4), backend+8, at(5.6)-at(3.4), "", "granted, for nobody")
	c.text(at(5.6)+8, backend+26, "dim", "released")
	c.cross(at(6.5), backend)
	c.text(704, backend+52, "bad end", "too late: nothing changes")
	c.timeAxis(318)
	return c
}
