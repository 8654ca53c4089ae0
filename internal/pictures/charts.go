package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// redisChart compares Pawl with its peers on Redis, by the tables of the document.
func redisChart(docs string) (*canvas, error) {
	const file = "internals/benchmarks-redis.md"
	return comparisonChart(docs, "Pawl on Redis, beside its peers", 2, 130, []tableColumn{
		{file, "", "own-64", "cycles/s", "64 goroutines, names of their own"},
		{file, "", "own-1", "cycles/s", "one goroutine"},
		{file, "", "local-64", "cycles/s", "64 goroutines of a process, one name"},
		{file, "", "one-64-2ms", "ms/hand-over", "64 clients on one name, 2 ms of work"},
		{file, "", "one-64-2ms", "longest wait ms", "64 clients on one name: fairness"},
		{file, "", "held-10000", "B/lease", "10 000 leases held"},
	})
}

// databasesChart compares Pawl with its peers on other databases.
func databasesChart(docs string) (*canvas, error) {
	const sql, other = "internals/benchmarks-postgresql-mariadb.md", "internals/benchmarks-etcd-nats-mongodb.md"
	var all []tableColumn
	for _, engine := range []struct{ file, heading string }{{sql, "PostgreSQL"}, {sql, "MariaDB"}, {other, "etcd"}, {other, "NATS"}} {
		all = append(all,
			tableColumn{engine.file, engine.heading, "own-64", "cycles/s", "64 names"},
			tableColumn{engine.file, engine.heading, "one-8-2ms", "ms/hand-over", "8 clients, one name"},
			tableColumn{engine.file, engine.heading, "one-8-2ms", "longest wait ms", "fairness"})
	}
	return comparisonChart(docs, "Pawl on other databases, beside what is used there", 3, 114, all)
}

// unitOfColumn has the unit of each column, and whether more or less is better.
var unitOfColumn = map[string]string{
	"cycles/s":        "locks and releases a second, more is better",
	"ms/hand-over":    "ms from a release to the next grant, less is better",
	"longest wait ms": "longest wait in ms, less is better",
	"B/lease":         "bytes of the client for each, less is better",
}

// A tableColumn is one column of a table.
type tableColumn struct{ file, heading, scenario, column, title string }

func comparisonChart(docs, title string, columns int, label float64, all []tableColumn) (*canvas, error) {
	var panels []panel
	rows := 0.0
	for _, f := range all {
		tables, err := codeTables(docs, f.file)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(tables, func(t table) bool { return t.name == f.scenario && strings.HasPrefix(t.heading, f.heading) })
		if i < 0 {
			return nil, fmt.Errorf("%s has no %s of %s", f.file, f.scenario, f.heading)
		}
		p := panel{title: f.title, unit: unitOfColumn[f.column], bars: barsOf(tables[i], f.column)}
		if f.heading != "" {
			p.title = f.heading + ": " + p.title
		}
		if columns > 2 {
			_, p.unit, _ = strings.Cut(p.unit, ", ")
			p.unit = f.column + ", " + p.unit
		}
		if panels = append(panels, p); (len(panels)-1)%columns == 0 {
			rows += panelHeight(len(p.bars))
		}
	}
	c := newCanvasOfWidth(gridWidth, rows+36, title, "Bars of the figures that the tables of the document have. Pawl's bars are in another colour, and each of the others has how many times as good it is.")
	y := c.grid(8, columns, label, panels)
	c.rect("holds", panelMargin, y, 14, 12, 2)
	c.text(panelMargin+20, y+11, "small", "Pawl")
	c.text(panelMargin+70, y+11, "small dim", "×: how many times as good as Pawl on the first of its lines;")
	c.text(panelMargin+470, y+11, "small better", "better than Pawl")
	return c, nil
}

// barsOf returns the bars of a column. Each shows the ratio to Pawl's bar.
func barsOf(t table, column string) []chartBar {
	var bars []chartBar
	pawl := 0.0
	for _, row := range t.rows {
		s := chartBar{label: row[0], isPawl: strings.HasPrefix(row[0], "pawl"), note: "failed"}
		if x, ok := t.figure(row, column); ok {
			s.value, s.note = x, groupThousands(x)
			if pawl == 0 && s.isPawl {
				pawl = x
			}
		}
		bars = append(bars, s)
	}
	for i := range bars {
		s := &bars[i]
		if pawl == 0 || s.value == 0 || s.value == pawl && s.isPawl {
			continue
		}
		good := s.value / pawl
		if column != "cycles/s" {
			good = pawl / s.value
		}
		s.ratio, s.isBetter = fmt.Sprintf("%.2f×", good), good > 1
	}
	return bars
}

// leasesChart draws the cost of leases that are held and renewed.
func leasesChart(docs string) (*canvas, error) {
	var bars []chartBar
	for _, file := range []string{"internals/benchmarks-redis.md", "internals/benchmarks-postgresql-mariadb.md", "internals/benchmarks-etcd-nats-mongodb.md"} {
		tables, err := codeTables(docs, file)
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
					bars = append(bars, chartBar{
						label: engine + ", " + groupThousands(float64(n)), value: client, second: server, isPawl: true,
						note: fmt.Sprintf("%.3g and %.3g %%", client, server),
					})
				}
			}
		}
	}
	c := newCanvas(groupHeight(len(bars))+26, "What leases cost that are held and renewed",
		"For each engine and number of leases a bar: how much of a core the client takes, and behind that how much the server takes.")
	y := c.group(8, "Leases of 10 s that are held and renewed: per cent of a core", bars)
	c.rect("holds", chartLeft, y-10, 14, 12, 2)
	c.text(chartLeft+20, y, "small", "the client")
	c.rect("grey", chartLeft+110, y-10, 14, 12, 2)
	c.text(chartLeft+130, y, "small", "the server")
	return c, nil
}

// reliabilityChart draws the number of schedules after which each planted bug is found.
func reliabilityChart(docs string) (*canvas, error) {
	rows, err := tableRows(docs, "internals/reliability.md", "Planted bugs")
	if err != nil {
		return nil, err
	}
	var bars []chartBar
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
		bars = append(bars, chartBar{label: row[0], value: float64(seed), isPawl: true, note: groupThousands(float64(seed))})
	}
	slices.SortStableFunc(bars, func(a, b chartBar) int { return int(b.value - a.value) })
	return bugBars(bars), nil
}

// bugBars draws bars whose labels are sentences.
func bugBars(bars []chartBar) *canvas {
	const left, longest = 420, 220
	c := newCanvas(52+barStep*float64(len(bars)), "After how many schedules each planted bug is found",
		"A bar for each bug that was planted, as long as the logarithm of how many schedules it took to find it.")
	c.text(16, 22, "bold", "Planted bugs: found after so many schedules (the scale is a logarithm)")
	y, most := 38.0, math.Log10(2*bars[0].value)
	for _, s := range bars {
		c.text(left-8, y+13, "end small", s.label)
		long := longest * math.Log10(2*s.value) / most // a bug that the first schedule finds has a bar, too
		c.rect("holds", left, y+1, long, barStep-5, 2)
		c.text(left+long+7, y+13, "small", s.note)
		y += barStep
	}
	return c
}

// groupThousands formats a number like 12 345, as the documents do.
func groupThousands(x float64) string {
	if x < 1000 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	s := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
