package report

import "strconv"

// columns appends the chosen claims, as one list of numbers for each field.
func (s *story) columns(b []byte, d *choice, bases []uint64) []byte {
	column := make([]int64, len(d.claims))
	field := func(key string, of func(c *claim) int64) {
		for i, at := range d.claims {
			column[i] = of(&s.claims[at])
		}
		b = append(append(append(b, ",\""...), key...), "\":"...)
		b = appendColumn(b, column)
	}
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, int64(len(d.claims)), 10)

	var id, asked int64
	field("id", func(c *claim) int64 { return step(&id, c.id) })
	field("asked", func(c *claim) int64 { return step(&asked, c.asked) })
	field("answered", func(c *claim) int64 { return later(c.asked, c.answered) })
	field("got", func(c *claim) int64 { return later(c.asked, c.got) })
	field("believed", func(c *claim) int64 { return later(c.asked, c.believed) })
	field("lost", func(c *claim) int64 { return later(c.asked, c.lost) })
	field("told", func(c *claim) int64 { return later(c.asked, c.told) })
	field("released", func(c *claim) int64 { return later(c.asked, c.released) })
	field("freed", func(c *claim) int64 { return later(c.asked, c.freed) })
	field("died", func(c *claim) int64 { return later(c.asked, c.died) })
	field("used", func(c *claim) int64 { return later(c.asked, c.used) })

	field("group", func(c *claim) int64 { return c.group })
	field("name", func(c *claim) int64 { return int64(c.name) })
	field("mode", func(c *claim) int64 { return int64(c.mode) })
	field("how", func(c *claim) int64 { return int64(c.how) })
	field("answer", func(c *claim) int64 { return int64(c.answer) })
	field("problem", func(c *claim) int64 { return int64(c.problem) })
	field("why", func(c *claim) int64 { return int64(c.why) })
	field("release", func(c *claim) int64 { return int64(c.release) })
	field("worker", func(c *claim) int64 { return int64(c.worker) })
	field("life", func(c *claim) int64 { return int64(c.life) })
	field("client", func(c *claim) int64 { return int64(c.client) })
	field("weight", func(c *claim) int64 { return int64(c.weight) })
	field("writes", func(c *claim) int64 { return int64(c.writes) })
	field("end", func(c *claim) int64 { return int64(c.end) })

	// A fence has 64 bits, and a number of a script has 53.
	b = append(b, `,"fence":[`...)
	for i, at := range d.claims {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFence(b, s.claims[at].fence, bases[s.claims[at].name])
	}
	return append(b, "]}"...)
}

// step returns the difference between a value and the value before it.
func step(before *int64, now int64) int64 {
	d := now - *before
	*before = now
	return d
}

// later returns t as a time after asked: 0 is never, 1 is at once. A time before asked is
// negative; only a broken history has one.
func later(asked, t int64) int64 {
	switch {
	case t == 0:
		return 0
	case t >= asked:
		return t - asked + 1
	}
	return t - asked
}

// appendFence appends 0 for none, 1 for the smallest fence of the name, and so on.
func appendFence(b []byte, fence, base uint64) []byte {
	if fence == 0 {
		return append(b, '0')
	}
	n := fence - base
	if n >= 1<<53-1 {
		return append(strconv.AppendUint(append(b, '"'), n+1, 10), '"')
	}
	return strconv.AppendUint(b, n+1, 10)
}

// appendColumn appends numbers in the shortest form that the script reads: one number if
// all are the same; if few are not 0, only these, with their indexes; otherwise all.
func appendColumn(b []byte, column []int64) []byte {
	same, some := true, 0
	for _, x := range column {
		same = same && x == column[0]
		if x != 0 {
			some++
		}
	}
	switch {
	case same && len(column) > 0:
		return strconv.AppendInt(b, column[0], 10)
	case some < len(column)/4:
		places, values := make([]int64, 0, some), make([]int64, 0, some)
		before := int64(0)
		for i, x := range column {
			if x != 0 {
				places, values = append(places, step(&before, int64(i))), append(values, x)
			}
		}
		b = appendList(append(b, `{"at":`...), places)
		b = appendList(append(b, `,"is":`...), values)
		return append(b, '}')
	}
	return appendList(b, column)
}

func appendList(b []byte, list []int64) []byte {
	b = append(b, '[')
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, x, 10)
	}
	return append(b, ']')
}
