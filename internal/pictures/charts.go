package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// redisChart is Pawl beside its peers, by the tables of the document.
func redisChart(docs string) (*canvas, error) {
	return contenders(docs, "Pawl on Redis, beside its peers", []figures{
		{"benchmarks-redis.md", "", "own-1", "cycles/s"},
		{"benchmarks-redis.md", "", "own-64", "cycles/s"},
		{"benchmarks-redis.md", "", "local-64", "cycles/s"},
		{"benchmarks-redis.md", "", "one-64-2ms", "longest wait ms"},
		{"benchmarks-redis.md", "", "one-64-2ms", "ms/hand-over"},
		{"benchmarks-redis.md", "", "held-10000", "B/lease"},
	})
}

// databasesChart is Pawl beside what is used on other databases.
func databasesChart(docs string) (*canvas, error) {
	const sql, other = "benchmarks-postgresql-mariadb.md", "benchmarks-etcd-nats-mongodb.md"
	var all []figures
	for _, engine := range []struct{ file, heading string }{{sql, "PostgreSQL"}, {sql, "MariaDB"}, {other, "etcd"}, {other, "NATS"}} {
		all = append(all,
			figures{engine.file, engine.heading, "own-64", "cycles/s"},
			figures{engine.file, engine.heading, "one-8-2ms", "ms/hand-over"},
			figures{engine.file, engine.heading, "one-8-2ms", "longest wait ms"})
	}
	return contenders(docs, "Pawl on other databases, beside what is used there", all)
}

// figures are those of one column of a table.
type figures struct{ file, heading, scenario, column string }

func contenders(docs, title string, all []figures) (*canvas, error) {
	type group struct {
		title   string
		strokes []stroke
	}
	var groups []group
	height := 12.0
	for _, f := range all {
		tables, err := printed(docs, f.file)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(tables, func(t table) bool { return t.name == f.scenario && strings.HasPrefix(t.heading, f.heading) })
		if i < 0 {
			return nil, fmt.Errorf("%s has no %s of %s", f.file, f.scenario, f.heading)
		}
		t := tables[i]
		g := group{title: t.what + ": " + f.column}
		if f.heading != "" {
			g.title = f.heading + ", " + g.title
		}
		if f.column != "cycles/s" {
			g.title += ", less is better"
		}
		for _, row := range t.rows {
			s := stroke{label: row[0], ours: strings.HasPrefix(row[0], "pawl"), beside: "failed"}
			if x, ok := t.figure(row, f.column); ok {
				s.value, s.beside = x, grouped(x)
			}
			g.strokes = append(g.strokes, s)
		}
		groups = append(groups, g)
		height += groupHeight(len(g.strokes))
	}
	c := newCanvas(height, title, "Bars of the figures that the tables of the document have; Pawl's are in another colour.")
	y := 8.0
	for _, g := range groups {
		y = c.group(y, g.title, g.strokes)
	}
	return c, nil
}

// leasesChart is what leases cost that are held and renewed.
func leasesChart(docs string) (*canvas, error) {
	var strokes []stroke
	for _, file := range []string{"benchmarks-redis.md", "benchmarks-postgresql-mariadb.md", "benchmarks-etcd-nats-mongodb.md"} {
		tables, err := printed(docs, file)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			leases, held := strings.CutPrefix(t.name, "held-")
			if !held {
				continue
			}
			n, err := strconv.Atoi(leases)
			if err != nil {
				return nil, err
			}
			engine, _, _ := strings.Cut(strings.SplitN(t.heading, " ", 2)[0], ",")
			for _, row := range t.rows {
				client, ok := t.figure(row, "client %core")
				server, ok2 := t.figure(row, "server %core")
				if row[0] == "pawl" && ok && ok2 {
					strokes = append(strokes, stroke{
						label: engine + ", " + grouped(float64(n)), value: client, more: server, ours: true,
						beside: fmt.Sprintf("%.3g and %.3g %%", client, server),
					})
				}
			}
		}
	}
	c := newCanvas(groupHeight(len(strokes))+26, "What leases cost that are held and renewed",
		"For each engine and number of leases a bar: how much of a core the client takes, and behind that how much the server takes.")
	y := c.group(8, "Leases of 10 s that are held and renewed: per cent of a core", strokes)
	c.rect("holds", chartLeft, y-10, 14, 12, 2)
	c.text(chartLeft+20, y, "small", "the client")
	c.rect("grey", chartLeft+110, y-10, 14, 12, 2)
	c.text(chartLeft+130, y, "small", "the server")
	return c, nil
}

// reliabilityChart is after how many schedules each planted bug is found.
func reliabilityChart(docs string) (*canvas, error) {
	rows, err := marked(docs, "reliability.md", "Planted bugs")
	if err != nil {
		return nil, err
	}
	var strokes []stroke
	column := 0
	for _, row := range rows {
		if i := slices.Index(row, "seed"); i >= 0 {
			column = i
			continue
		}
		seed, err := strconv.Atoi(row[column])
		if err != nil {
			return nil, fmt.Errorf("the seed of %q: %w", row[0], err)
		}
		strokes = append(strokes, stroke{label: row[0], value: float64(seed), ours: true, beside: grouped(float64(seed))})
	}
	slices.SortStableFunc(strokes, func(a, b stroke) int { return int(b.value - a.value) })
	return faults(strokes), nil
}

// faults draws bars whose labels are sentences.
func faults(strokes []stroke) *canvas {
	const left, longest = 420, 220
	c := newCanvas(52+strokeApart*float64(len(strokes)), "After how many schedules each planted bug is found",
		"A bar for each bug that was planted, as long as the logarithm of how many schedules it took to find it.")
	c.text(16, 22, "bold", "Planted bugs: found after so many schedules (the scale is a logarithm)")
	y, most := 38.0, math.Log10(2*strokes[0].value)
	for _, s := range strokes {
		c.text(left-8, y+13, "end small", s.label)
		long := longest * math.Log10(2*s.value) / most // once is a bar, too
		c.rect("holds", left, y+1, long, strokeApart-5, 2)
		c.text(left+long+7, y+13, "small", s.beside)
		y += strokeApart
	}
	return c
}

// grouped is a number with its thousands apart, as documents have it.
func grouped(x float64) string {
	if x < 1000 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	s := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
