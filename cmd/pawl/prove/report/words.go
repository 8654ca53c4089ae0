package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// narrow is a narrow blank without a line break, for the groups of digits in a number and
// before a unit.
const narrow = "\u202f"

// number writes 302114 as "302 114".
func number(n int) string {
	s := strconv.Itoa(n)
	var b strings.Builder
	for i, r := range s {
		if left := len(s) - i; i > 0 && left%3 == 0 && s[i-1] != '-' {
			b.WriteString(narrow)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// counted returns "1 lease" or "20 leases".
func counted(n int, one string) string {
	switch {
	case n == 1:
		return "1" + narrow + one
	case strings.HasSuffix(one, "s"):
		return number(n) + narrow + one + "es"
	}
	return number(n) + narrow + one + "s"
}

// plural returns a number and its noun. In "pair of claims" only "pair" gets the ending.
func plural(n int, what string) string {
	first, rest, more := strings.Cut(what, " ")
	if more && (strings.HasPrefix(rest, "of ") || strings.HasPrefix(rest, "that ")) {
		return counted(n, first) + " " + rest
	}
	return counted(n, what)
}

// moment returns a time of the run: "3 min 12.4 s".
func moment(ns int64, digits int) string {
	unit := time.Duration(1)
	for range 9 - digits {
		unit *= 10
	}
	d := time.Duration(ns).Round(unit)
	minutes, rest := d/time.Minute, d%time.Minute
	s := strconv.FormatFloat(rest.Seconds(), 'f', digits, 64) + narrow + "s"
	if minutes == 0 {
		return s
	}
	return number(int(minutes)) + narrow + "min " + s
}

// length returns a duration with three digits: "1.24 s", "38.2 ms".
func length(d time.Duration) string {
	digits := func(x float64, unit string) string {
		switch {
		case x >= 99.95:
			return fmt.Sprintf("%.0f%s%s", x, narrow, unit)
		case x >= 9.995:
			return fmt.Sprintf("%.1f%s%s", x, narrow, unit)
		}
		return strings.TrimSuffix(fmt.Sprintf("%.2f", x), ".00") + narrow + unit
	}
	switch {
	case d >= time.Minute:
		return strings.Replace(moment(int64(d), 1), ".0"+narrow, narrow, 1)
	case d >= time.Second:
		return digits(d.Seconds(), "s")
	case d >= time.Millisecond:
		return digits(float64(d)/1e6, "ms")
	case d >= time.Microsecond:
		return digits(float64(d)/1e3, "µs")
	}
	return strconv.Itoa(int(d)) + narrow + "ns"
}

// quoted returns a name in quotation marks.
func quoted(s string) string { return "“" + visible.Text(s) + "”" }

func class(s string) markup.Attribute { return markup.Attr("class", s) }
func id(s string) markup.Attribute    { return markup.Attr("id", s) }

// text returns an element with only text in it.
func text(tag, s string, parts ...markup.Part) markup.HTML {
	return markup.El(tag, append(parts, markup.Text(s))...)
}

// foreign returns an element with text from the history. The text's direction does not
// affect the text around it.
func foreign(tag, s string, parts ...markup.Part) markup.HTML {
	return markup.El(tag, append(parts, text("bdi", visible.Text(s)))...)
}

// list returns a list without bullets.
func list(name string, items []markup.HTML) markup.HTML {
	parts := []markup.Part{class(name), markup.Attr("role", "list")}
	for _, i := range items {
		parts = append(parts, i)
	}
	return markup.El("ul", parts...)
}

// facts returns a table with two columns.
func facts(rows ...[2]markup.HTML) markup.HTML {
	parts := []markup.Part{class("facts")}
	for _, r := range rows {
		parts = append(parts, markup.El("div", markup.El("dt", r[0]), markup.El("dd", r[1])))
	}
	return markup.El("dl", parts...)
}

func fact(what, value string) [2]markup.HTML {
	return [2]markup.HTML{markup.Text(what), markup.Text(value)}
}
