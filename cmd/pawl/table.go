package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/words"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

// printList prints the names of `pawl ls` for people: a line for each holder.
func printList(out io.Writer, entries []pawl.Entry, now time.Time) error {
	if len(entries) == 0 {
		return nil
	}
	var b strings.Builder
	t := newTable(&b, "NAME", "KIND", "HOLDER", "FENCE", "SINCE", "LEFT", "WAITING")
	for _, e := range entries {
		waiting := fmt.Sprint(len(e.Waiters))
		if len(e.Holders) == 0 {
			t.writeRow(words.QuoteIfNeeded(e.Name), "-", whyListed(e), "-", "-", "-", waiting)
		}
		limits := ""
		if words.DifferentLimits(&e) != "" {
			limits = ", limits differ"
		}
		for _, h := range e.Holders {
			t.writeRow(words.QuoteIfNeeded(e.Name), overview.KindWords(h.Permits, h.Limit)+limits, words.Holder(h), fmt.Sprint(h.Fence), timeOfDay(h.Since, now), timeLeft(h.ExpiresIn), waiting)
		}
	}
	t.Flush()
	_, err := io.WriteString(out, b.String())
	return err
}

// printEntry prints the entry of `pawl show` for people.
func printEntry(out io.Writer, e pawl.Entry, now time.Time) error {
	state := "is held"
	switch {
	case len(e.Holders) > 0:
	case e.ClosedFor > 0:
		state = "is " + whyListed(e)
	case len(e.Waiters) > 0:
		state = "is free, but has waiters"
	case isKnown(&e):
		state = "is free"
	default:
		state = "was never locked here, or is forgotten"
	}
	if len(e.Holders) > 0 && e.ClosedFor > 0 {
		state += ", and " + whyListed(e)
	}
	if e.Fence > 0 {
		state += fmt.Sprintf("; its last fence is %d", e.Fence)
	}
	if e.Value != nil {
		state += fmt.Sprintf("; its value is %q", e.Value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", words.QuoteIfNeeded(e.Name), state)
	if len(e.Holders) > 0 {
		b.WriteByte('\n')
		t := newTable(&b, "FENCE", "KIND", "HOLDER", "SINCE", "LEFT", "TTL")
		for _, h := range e.Holders {
			t.writeRow(fmt.Sprint(h.Fence), overview.KindWords(h.Permits, h.Limit), words.Holder(h), timeOfDay(h.Since, now), timeLeft(h.ExpiresIn), h.TTL.String())
		}
		t.Flush()
	}
	if len(e.Waiters) > 0 {
		b.WriteByte('\n')
		t := newTable(&b, "PLACE", "KIND", "WAITER", "SINCE")
		for i, w := range e.Waiters {
			t.writeRow(fmt.Sprint(i+1), overview.KindWords(w.Permits, w.Limit), w.Owner.String(), timeOfDay(w.Since, now))
		}
		t.Flush()
	}
	if limits := words.DifferentLimits(&e); limits != "" {
		fmt.Fprintf(&b, "\nwarning: holders and waiters have different limits, %s; the greatest applies\n", limits)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// whyListed returns why a name without holders is listed.
func whyListed(e pawl.Entry) string {
	if e.ClosedFor > 0 {
		return fmt.Sprintf("closed for another %v, after a holder was broken or expired", words.Rounded(e.ClosedFor))
	}
	return "-"
}

// timeOfDay returns the time of day, with the date unless it is today's.
func timeOfDay(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func timeLeft(d time.Duration) string { return words.Rounded(d).String() + " left" }

// A table has aligned columns, and no blanks at the ends of its lines. It is written by
// Flush, which cannot fail here.
type table struct{ *tabwriter.Writer }

func newTable(out *strings.Builder, heads ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.writeRow(heads...)
	return t
}

func (t table) writeRow(cells ...string) {
	for i, c := range cells {
		cells[i] = visible.Text(c)
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}
