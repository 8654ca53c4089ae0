package main

// drawEntry draws the entry that a backend keeps of one name, and the weights of claims.
func drawEntry() *canvas {
	c := newCanvas(372, "The entry of a name, and its queue",
		"All that a backend keeps of one name: the last fence, who holds it until when, the queue in the order of arrival, a value, "+
			"and whether the name is closed. When the holder releases or expires, the head of the queue is granted in the same step. "+
			"Below: a mutex takes all of the name, readers take one each without a limit, of a semaphore of four three permits are taken.")
	c.rect("box", 16, 12, 698, 226, 6)
	c.text(32, 38, "bold", "All that a backend keeps of the name “report”")

	const label, what, why = 32, 130, 340
	c.text(label, 68, "dim", "last fence")
	c.text(what, 68, "bold", "42")
	c.text(why, 68, "dim", "each grant of this name gets a greater one")
	c.text(label, 101, "dim", "holds")
	c.bar("holds", what, 84, 190, "on", "web-2, fence 42")
	c.text(why, 101, "dim", "until 12:00:30; each renewal moves that on")
	c.arrow("go", 186, 152, 186, 113)
	c.text(200, 137, "dim", "released or expired: the next one is granted in the same step")
	c.text(label, 171, "dim", "queue")
	for i, waiter := range []string{"web-3", "cron-1", "web-1"} {
		c.bar("waits", what+122*float64(i), 154, 112, "", waiter)
	}
	c.text(510, 171, "dim", "first come, first served")
	c.text(label, 201, "dim", "value")
	c.text(what, 201, "", "“order 1187”")
	c.text(why, 201, "dim", "1 KB at most, written by who holds the name")
	c.text(label, 225, "dim", "closed")
	c.text(what, 225, "", "no")
	c.text(why, 225, "dim", "after a break, or a lock-delay: for so long")

	const kinds = 286
	c.text(label, 268, "bold", "A claim takes a weight out of a limit, so one name is any kind of lock")
	c.bar("holds", 32, kinds, 200, "on", "web-2: all of it")
	c.text(32, kinds+45, "dim", "a mutex, or a writer: alone")
	for i, reader := range []string{"web-1", "web-3", "web-4"} {
		c.bar("holds", 265+52*float64(i), kinds, 48, "on small", reader)
	}
	c.rect("waits", 421, kinds, 44, barHeight, 4)
	c.text(265, kinds+45, "dim", "readers: 1 each, no limit")
	c.bar("holds", 498, kinds, 98, "on small", "gpu-1: 2")
	c.bar("holds", 600, kinds, 47, "on small", "gpu-2")
	c.rect("waits", 651, kinds, 47, barHeight, 4)
	c.text(498, kinds+45, "dim", "a semaphore of 4: one is free")
	c.text(32, kinds+72, "dim", "Granted: if nobody waits ahead, the name is not closed, and the weight finds room.")
	return c
}
