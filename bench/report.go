package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// A result has the figures of a contender in a scenario: the medians of its rounds.
type result struct {
	contender string
	medians   figures
	err       error // the error of the last round that failed, if no round worked
}

// printTable prints the results of a scenario. The ratio compares a contender with the
// first one that worked; above 1 it is better.
func printTable(w io.Writer, s scenario, results []result) {
	fmt.Fprintf(w, "\n%s: %s\n", s.name, s.description)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "contender\t%s\tratio\t%s\t\n", s.unit, strings.Join(s.otherFigures, "\t"))
	base := math.NaN()
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(t, "%s\tfailed\t\n", r.contender)
			continue
		}
		if math.IsNaN(base) {
			base = r.medians[0]
		}
		ratio := r.medians[0] / base
		if !s.moreIsBetter {
			ratio = base / r.medians[0]
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t", r.contender, threeDigits(r.medians[0]), formatRatio(ratio))
		for _, v := range r.medians[1:] {
			fmt.Fprintf(t, "%s\t", threeDigits(v))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(w, "%s: %.100s\n", r.contender, firstLine(r.err))
		}
	}
}

// formatRatio formats a ratio, or returns "-" without one.
func formatRatio(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// threeDigits writes a number with three significant digits.
func threeDigits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 1):
		return "never"
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
