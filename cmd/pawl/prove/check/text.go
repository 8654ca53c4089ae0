package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
)

// Arguments of [world.add] have these types, because most texts of a broken history are
// never formatted.
type (
	who    struct{ *history.Claim } // the worker of a claim
	upper  struct{ *history.Claim } // the same, at the begin of a sentence
	list   []*history.Claim         // the workers of several claims, at most eight
	at     int64                    // a time of the history
	length int64                    // a duration in nanoseconds
)

func (c who) String() string {
	process := ""
	if c.Life > 1 {
		process = fmt.Sprintf(", process %d", c.Life)
	}
	return fmt.Sprintf("worker %d (claim %d%s)", c.Worker, c.ID, process)
}

func (c upper) String() string { return "W" + who(c).String()[1:] }

func (claims list) String() string {
	const maxListed = 8
	var b strings.Builder
	for i, c := range claims {
		switch {
		case i == maxListed:
			fmt.Fprintf(&b, " and %d more", len(claims)-maxListed)
			return b.String()
		case i > 0 && i == len(claims)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(who{c}.String())
	}
	return b.String()
}

func (t at) String() string { return fmt.Sprintf("%.3f s", float64(t)/1e9) }

func (ns length) String() string {
	switch d := time.Duration(ns); {
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.0f ms", math.Floor(float64(d)/1e6))
	}
	return fmt.Sprintf("%.3f ms", float64(ns)/1e6)
}

// ids returns the IDs of claims, at most twenty.
func ids(claims ...*history.Claim) []int64 {
	const maxIDs = 20
	ids := make([]int64, 0, min(len(claims), maxIDs))
	for _, c := range claims[:min(len(claims), maxIDs)] {
		ids = append(ids, c.ID)
	}
	return ids
}

// plural returns a number and its noun.
func plural(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
