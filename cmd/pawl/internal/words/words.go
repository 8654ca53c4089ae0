// Package words formats what the command and its live view print.
package words

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-go/pawl"
)

// ErrorText returns the text of an error in one line, without the "pawl: " at the
// beginning of each error of the library, even inside of joined errors.
func ErrorText(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "pawl: ")
	}
	return strings.Join(lines, "; ")
}

// QuoteIfNeeded returns a name, or another text from outside, for a table or a sentence.
// It quotes a text that could be mistaken for something else.
func QuoteIfNeeded(s string) string {
	isUnsafe := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == unicode.ReplacementChar }
	if s == "" || strings.TrimSpace(s) != s || strings.ContainsFunc(s, isUnsafe) {
		return strconv.Quote(s)
	}
	return s
}

// Rounded rounds a duration for people.
func Rounded(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// Holder returns the holder of a lease, with a remark if the holder has released it.
func Holder(h pawl.Holder) string {
	if h.Released {
		return h.Owner.String() + " (has released it)"
	}
	return h.Owner.String()
}

// DifferentLimits lists the limits that clients set for the permits of a name, if they
// differ: "3 and 4". Then a client has a mistake, or another configuration.
func DifferentLimits(e *pawl.Entry) string {
	var all []int
	for _, h := range e.Holders {
		if h.Kind() == pawl.KindPermits {
			all = append(all, h.Limit)
		}
	}
	for _, w := range e.Waiters {
		if w.Kind() == pawl.KindPermits {
			all = append(all, w.Limit)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	last := len(all) - 1
	if last < 1 {
		return ""
	}
	var list []string
	for _, n := range all[:last] {
		list = append(list, strconv.Itoa(n))
	}
	return strings.Join(list, ", ") + " and " + strconv.Itoa(all[last])
}
