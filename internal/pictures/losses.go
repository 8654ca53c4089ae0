package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The columns of the table in locks-lose.md.
const (
	engineColumn = iota
	contenderColumn
	_ // sections
	updatesColumn
	_ // overlaps
	_ // lost holders
	unnoticedColumn
	_ // median
	noticeColumn
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
		if row[engineColumn] == "on" {
			continue
		}
		if len(row) <= noticeColumn {
			return nil, fmt.Errorf("the row of %q is too short", row[0])
		}
		if n := len(panels); n == 0 || !strings.HasPrefix(panels[n-1].title, row[engineColumn]+":") {
			panels = append(panels,
				panel{title: row[engineColumn] + ": lost updates", unit: "in 10 000 sections, less is better"},
				panel{title: row[engineColumn] + ": a lost holder is told", unit: "s after another client got the name, at worst"})
		}
		updates, notices := &panels[len(panels)-2], &panels[len(panels)-1]
		isPawl := strings.HasPrefix(row[contenderColumn], "Pawl")
		updatesCell, _, _ := strings.Cut(row[updatesColumn], " ")
		value, err := strconv.ParseFloat(updatesCell, 64)
		if err != nil {
			return nil, fmt.Errorf("the lost updates of %q: %w", row[contenderColumn], err)
		}
		updates.bars = append(updates.bars, chartBar{label: row[contenderColumn], value: value, isPawl: isPawl, note: updatesCell})
		notices.bars = append(notices.bars, noticeBar(row, isPawl))
	}
	height := 16.0
	for i := 0; i < len(panels); i += 2 {
		height += panelHeight(len(panels[i].bars))
	}
	c := newCanvasOfWidth(gridWidth, height, "What locks lose under faults",
		"Bars of the figures that the table of the document has: lost updates, and how long after another client got the name a lost holder was told. Pawl's bars are in another colour.")
	c.grid(8, 2, 210, panels)
	return c, nil
}

// noticeBar returns the bar for the longest time from the grant to another client until
// the lock notified its lost holder. Its note is negative if the notice came first.
func noticeBar(row []string, isPawl bool) chartBar {
	s := chartBar{label: row[contenderColumn], isPawl: isPawl, note: row[noticeColumn]}
	number, _, _ := strings.Cut(row[noticeColumn], " ")
	if x, err := strconv.ParseFloat(number, 64); err == nil {
		s.value = max(x, 0)
	}
	if row[noticeColumn] == "-" {
		s.note = "none was lost"
	} else if n := row[unnoticedColumn]; n != "0" && s.note != "never" {
		s.note += ", and " + n + " never"
	}
	return s
}
