package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// who names the holder or the waiter of a claim.
func who(c *history.Claim) string {
	process := ""
	if c.Life > 1 {
		process = fmt.Sprintf(", process %d", c.Life)
	}
	return fmt.Sprintf("worker %d (claim %d%s)", c.Worker, c.ID, process)
}

// upper returns who with a capital, for the begin of a sentence.
func upper(c *history.Claim) string { return "W" + who(c)[1:] }

// at is a time of the history.
func at(t int64) string { return fmt.Sprintf("%.3f s", float64(t)/1e9) }

// length returns a duration for people to read.
func length(ns int64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.0f ms", math.Floor(float64(d)/1e6))
	}
	return fmt.Sprintf("%.3f ms", float64(d)/1e6)
}

// list names several claims, but not very many.
func list(claims []*history.Claim) string {
	const most = 8
	var b strings.Builder
	for i, c := range claims {
		switch {
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(claims)-most)
			return b.String()
		case i > 0 && i == len(claims)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(who(c))
	}
	return b.String()
}

// ids returns the IDs of claims, at most twenty.
func ids(claims ...*history.Claim) []int64 {
	const most = 20
	ids := make([]int64, 0, min(len(claims), most))
	for _, c := range claims[:min(len(claims), most)] {
		ids = append(ids, c.ID)
	}
	return ids
}

// plural is a number of things.
func plural(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
