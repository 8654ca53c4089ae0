package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The columns of the table of what locks lose.
const (
	lostOn = iota
	lostContender
	_ // sections
	lostUpdates
	_ // overlaps
	_ // lost holders
	lostNotTold
	_ // median
	lostToldWorst
)

// lossesChart draws the losses of locks under faults, and the times at which they notify
// a lost holder, by the table of the document.
func lossesChart(docs string) (*canvas, error) {
	rows, err := marked(docs, "internals/locks-lose.md", "The results")
	if err != nil {
		return nil, err
	}
	var panels []panel
	for _, row := range rows {
		if row[lostOn] == "on" {
			continue
		}
		if len(row) <= lostToldWorst {
			return nil, fmt.Errorf("the row of %q is too short", row[0])
		}
		if n := len(panels); n == 0 || !strings.HasPrefix(panels[n-1].title, row[lostOn]+":") {
			panels = append(panels,
				panel{title: row[lostOn] + ": lost updates", unit: "in 10 000 sections, less is better"},
				panel{title: row[lostOn] + ": a lost holder is told", unit: "s after another client got the name, at worst"})
		}
		updates, told := &panels[len(panels)-2], &panels[len(panels)-1]
		ours := strings.HasPrefix(row[lostContender], "Pawl")
		often, _, _ := strings.Cut(row[lostUpdates], " ")
		value, err := strconv.ParseFloat(often, 64)
		if err != nil {
			return nil, fmt.Errorf("the lost updates of %q: %w", row[lostContender], err)
		}
		updates.strokes = append(updates.strokes, stroke{label: row[lostContender], value: value, ours: ours, beside: often})
		told.strokes = append(told.strokes, toldStroke(row, ours))
	}
	height := 16.0
	for i := 0; i < len(panels); i += 2 {
		height += panelHeight(len(panels[i].strokes))
	}
	c := newCanvasOfWidth(gridWidth, height, "What locks lose under faults",
		"Bars of the figures that the table of the document has: lost updates, and how long after another client got the name a lost holder was told. Pawl's bars are in another colour.")
	c.grid(8, 2, 210, panels)
	return c, nil
}

// toldStroke returns the stroke for the time from the grant to another client until the
// lock notified its lost holder, at worst. The text beside it is negative if the notice
// came first.
func toldStroke(row []string, ours bool) stroke {
	s := stroke{label: row[lostContender], ours: ours, beside: row[lostToldWorst]}
	number, _, _ := strings.Cut(row[lostToldWorst], " ")
	if x, err := strconv.ParseFloat(number, 64); err == nil {
		s.value = max(x, 0)
	}
	if row[lostToldWorst] == "-" {
		s.beside = "none was lost"
	} else if n := row[lostNotTold]; n != "0" && s.beside != "never" {
		s.beside += ", and " + n + " never"
	}
	return s
}
