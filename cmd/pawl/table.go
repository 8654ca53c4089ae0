package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

// printList is `pawl ls` for people: a line for each holder.
func printList(out io.Writer, entries []pawl.Entry, now time.Time) error {
	if len(entries) == 0 {
		return nil
	}
	t := newTable(out, "NAME", "KIND", "HOLDER", "FENCE", "SINCE", "LEFT", "WAITING")
	for _, e := range entries {
		waiting := fmt.Sprint(len(e.Waiters))
		if len(e.Holders) == 0 {
			t.row(plain(e.Name), "-", nobody(e), "-", "-", "-", waiting)
		}
		differ := ""
		if len(limits(&e)) > 1 {
			differ = ", limits differ"
		}
		for _, h := range e.Holders {
			t.row(plain(e.Name), overview.KindWords(h.Weight, h.Limit)+differ, holderWords(h), fmt.Sprint(h.Fence), clock(h.Since, now), left(h.ExpiresIn), waiting)
		}
	}
	return t.flush()
}

// printEntry is `pawl show` for people.
func printEntry(out io.Writer, e pawl.Entry, now time.Time) error {
	state := "is held"
	switch {
	case len(e.Holders) > 0:
	case e.ClosedFor > 0:
		state = "is " + nobody(e)
	case len(e.Waiters) > 0:
		state = "is free, but has waiters"
	default:
		state = "is free"
	}
	if e.Fence > 0 {
		state += fmt.Sprintf("; its last fence is %d", e.Fence)
	}
	if e.Value != nil {
		state += fmt.Sprintf("; its value is %q", e.Value)
	}
	if _, err := fmt.Fprintf(out, "%s %s\n", plain(e.Name), state); err != nil {
		return err
	}
	if len(e.Holders) > 0 {
		if err := printHolders(out, e.Holders, now); err != nil {
			return err
		}
	}
	if len(e.Waiters) > 0 {
		if err := printWaiters(out, e.Waiters, now); err != nil {
			return err
		}
	}
	if l := limits(&e); len(l) > 1 {
		_, err := fmt.Fprintf(out, "\nwarning: they go by different limits, %s: as many are held as the greatest allows\n", wordsOf(l))
		return err
	}
	return nil
}

func printWaiters(out io.Writer, waiters []pawl.Waiter, now time.Time) error {
	fmt.Fprintln(out)
	t := newTable(out, "PLACE", "KIND", "WAITER", "SINCE")
	for i, w := range waiters {
		t.row(fmt.Sprint(i+1), overview.KindWords(w.Weight, w.Limit), w.Owner.String(), clock(w.Since, now))
	}
	return t.flush()
}

// limits are those that the permits of a name go by, sorted: one, unless somebody is
// mistaken, or was started with another configuration.
func limits(e *pawl.Entry) (all []int) {
	for _, h := range e.Holders {
		if overview.Kind(h.Weight, h.Limit) == overview.Permits {
			all = append(all, h.Limit)
		}
	}
	for _, w := range e.Waiters {
		if overview.Kind(w.Weight, w.Limit) == overview.Permits {
			all = append(all, w.Limit)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wordsOf are numbers for a sentence: "3 and 4".
func wordsOf(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func printHolders(out io.Writer, holders []pawl.Holder, now time.Time) error {
	fmt.Fprintln(out)
	t := newTable(out, "FENCE", "KIND", "HOLDER", "SINCE", "LEFT")
	for _, h := range holders {
		t.row(fmt.Sprint(h.Fence), overview.KindWords(h.Weight, h.Limit), holderWords(h), clock(h.Since, now), left(h.ExpiresIn))
	}
	return t.flush()
}

func holderWords(h pawl.Holder) string {
	if h.Released {
		return h.Owner.String() + " (has released it)"
	}
	return h.Owner.String()
}

// nobody says why a name without holders is listed all the same.
func nobody(e pawl.Entry) string {
	if e.ClosedFor > 0 {
		return fmt.Sprintf("closed for another %v, after its last holder was broken or expired", brief(e.ClosedFor))
	}
	return "-"
}

// clock is the time of day, with the date if that is another than today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func left(d time.Duration) string { return brief(d).String() + " left" }

// brief is a duration as exactly as people want it.
func brief(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// table has aligned columns, and no blanks at the ends of its lines.
type table struct {
	out io.Writer
	buf strings.Builder
	tab *tabwriter.Writer
}

func newTable(out io.Writer, heads ...string) *table {
	t := &table{out: out}
	t.tab = tabwriter.NewWriter(&t.buf, 0, 0, 2, ' ', 0)
	t.row(heads...)
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = visible.Text(c)
	}
	fmt.Fprintln(t.tab, strings.Join(cells, "\t"))
}

func (t *table) flush() error {
	if err := t.tab.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(t.out, t.buf.String())
	return err
}
