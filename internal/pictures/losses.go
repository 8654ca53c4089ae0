package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The columns of the table in locks-lose.md.
const (
	lostOn = iota
	lostContender
	_ // sections
	lostUpdates
	_ // overlaps
	_ // lost holders
	lostWithoutNotice
	_ // median
	lostLatestNotice
)

// lossesChart draws the lost updates of locks under faults, and the times at which they
// notify a lost holder, by the table of the document.
func lossesChart(docs string) (*canvas, error) {
	rows, err := tableRows(docs, "internals/locks-lose.md", "The results")
	if err != nil {
		return nil, err
	}
	var panels []panel
	for _, row := range rows {
		if row[lostOn] == "on" {
			continue
		}
		if len(row) <= lostLatestNotice {
			return nil, fmt.Errorf("the row of %q is too short", row[0])
		}
		if n := len(panels); n == 0 || !strings.HasPrefix(panels[n-1].title, row[lostOn]+":") {
			panels = append(panels,
				panel{title: row[lostOn] + ": lost updates", unit: "in 10 000 sections, less is better"},
				panel{title: row[lostOn] + ": a lost holder is told", unit: "s after another client got the name, at worst"})
		}
		updates, notices := &panels[len(panels)-2], &panels[len(panels)-1]
		isPawl := strings.HasPrefix(row[lostContender], "Pawl")
		lostUpdatesCell, _, _ := strings.Cut(row[lostUpdates], " ")
		value, err := strconv.ParseFloat(lostUpdatesCell, 64)
		if err != nil {
			return nil, fmt.Errorf("the lost updates of %q: %w", row[lostContender], err)
		}
		updates.strokes = append(updates.strokes, stroke{label: row[lostContender], value: value, isPawl: isPawl, note: lostUpdatesCell})
		notices.strokes = append(notices.strokes, noticeStroke(row, isPawl))
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

// noticeStroke returns the stroke for the longest time from the grant to another client
// until the lock notified its lost holder. Its note is negative if the notice came first.
func noticeStroke(row []string, isPawl bool) stroke {
	s := stroke{label: row[lostContender], isPawl: isPawl, note: row[lostLatestNotice]}
	number, _, _ := strings.Cut(row[lostLatestNotice], " ")
	if x, err := strconv.ParseFloat(number, 64); err == nil {
		s.value = max(x, 0)
	}
	if row[lostLatestNotice] == "-" {
		s.note = "none was lost"
	} else if n := row[lostWithoutNotice]; n != "0" && s.note != "never" {
		s.note += ", and " + n + " never"
	}
	return s
}
