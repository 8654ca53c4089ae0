package main

import (
	"fmt"
	"io"
	"time"
)

// printLossTable prints the losses of the contenders as a table of Markdown.
func printLossTable(w io.Writer, engine string, all []losses) {
	fmt.Fprintln(w, "\n| on | contender | sections | lost updates | overlaps | lost holders | not told | told, median | told, worst | wait, median | wait, p99 |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, l := range all {
		median, worst := "-", "-"
		switch {
		case l.LostHolders > 0 && l.UnawareHolders == l.LostHolders:
			median, worst = "never", "never"
		case l.LostHolders > 0:
			median, worst = seconds(l.NoticeMedian), seconds(l.NoticeWorst)
		}
		fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %d | %d | %s | %s | %s | %s |\n", engine, l.Contender, l.Sections,
			l.perSections(l.LostUpdates), l.perSections(l.Overlaps), l.LostHolders, l.UnawareHolders, median, worst, seconds(l.WaitMedian), seconds(l.WaitP99))
	}
}

// perSections returns the number of events in 10 000 sections, and their total.
func (l losses) perSections(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f (%d)", 10_000*float64(n)/float64(max(l.Sections, 1)), n)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }
