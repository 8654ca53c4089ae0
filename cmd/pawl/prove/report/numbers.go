package report

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// numbers returns the tables of the counts and times.
func (p *page) numbers() markup.HTML {
	n := &p.v.Numbers
	return markup.El("div", class("columns"),
		card("Leases",
			fact("Granted", number(n.Leases)),
			fact("Refused: others held it", number(n.Refused)),
			fact("Wait timed out", number(n.TimedOut)),
			fact("No answer, or an error", number(n.Unknown)),
			fact("Lost, and the holder saw it", number(n.Lost)),
			fact("of these, the lock woke the holder up", number(n.Woken)),
			fact("Held by a process that died", number(n.Died)),
			fact("Taken over by the next claim", number(n.TakenOver)),
		),
		card("Times",
			fact("Wait, median", lengthOrDash(n.WaitMedian)),
			fact("Wait, 99 of 100 below", lengthOrDash(n.WaitP99)),
			fact("Wait, longest", lengthOrDash(n.WaitMax)),
			fact("Release to next grant, median", lengthOrDash(n.HandoverMedian)),
			fact("Handovers", number(n.Handovers)),
			fact("Until a holder saw its loss, longest", lengthOrDash(n.MaxLossDelay)),
			fact("Times this machine kept a process from running", number(n.Pauses)),
			fact("of these, longest", lengthOrDash(n.LongestPause)),
			fact("Leases a second, calm", rate(n.CalmRate)),
			fact("Leases a second, under faults, while the server ran", rate(n.FaultRate)),
		),
		p.faultTable(),
		p.lateWrites(),
		card("Search for an order (porcupine)",
			fact("Names decided", number(n.PorcupineNames)+" of "+number(len(p.names.list))),
			fact("Pieces", number(n.PorcupinePieces)),
			fact("Operations", number(n.PorcupineOperations)),
			fact("Pieces that took too long", number(n.PorcupineGaveUp)),
		),
	)
}

func card(heading string, rows ...[2]markup.HTML) markup.HTML {
	return markup.El("section", class("card"), text("h3", heading), facts(rows...))
}

func lengthOrDash(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return length(d)
}

func rate(x float64) string {
	if x >= 100 {
		return number(int(x + .5))
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// faultTable lists how many faults of each kind had an effect, and how many had none.
func (p *page) faultTable() markup.HTML {
	effective, ineffective := p.v.Numbers.FaultsByKind, map[string]int{}
	for _, f := range p.faults {
		if f.Hit == 0 {
			ineffective[f.Kind]++
		}
	}
	kinds := slices.Concat(history.Kinds(), slices.Sorted(maps.Keys(effective)), slices.Sorted(maps.Keys(ineffective)))
	var rows [][2]markup.HTML
	for i, k := range kinds {
		if slices.Index(kinds, k) < i || effective[k] == 0 && ineffective[k] == 0 && !slices.Contains(p.Run.Faults, k) {
			continue
		}
		value := number(effective[k])
		if ineffective[k] > 0 {
			value += " (" + number(ineffective[k]) + " more had no effect)"
		}
		rows = append(rows, [2]markup.HTML{markup.Join(legendKey(k), text("span", meanings[k], class("aside"))), markup.Text(value)})
	}
	if len(rows) == 0 {
		rows = append(rows, fact("None", "0"))
	}
	return card("Faults", rows...)
}

// meanings has a description of each kind of fault.
var meanings = map[string]string{
	"stop":           " a process is stopped for longer than the TTL",
	"kill":           " a process is killed",
	"crash":          " a process exits while it holds a lease",
	"overstay":       " a holder works on after its loss",
	"cut":            " all connections are reset",
	"delay":          " all data is delayed",
	"reorder":        " half of the connections are delayed",
	"swallow":        " replies do not arrive",
	"silence":        " no data arrives",
	"server-stop":    " the server is stopped",
	"server-kill":    " the server is killed",
	"server-restart": " the server restarts",
	"failover":       " another server takes over",
}

// legendKey returns the entry of a kind of fault in the legend. The style has its colour.
func legendKey(kind string) markup.HTML {
	colour := "other"
	if meanings[kind] != "" {
		colour = kind
	}
	return text("span", visible.Text(kind), class("key f-"+colour))
}

// lateWrites returns the table of accepted and refused writes.
func (p *page) lateWrites() markup.HTML {
	n := &p.v.Numbers
	why := "A holder whose process is stopped cannot see that its lease is over, and may write late. Only the resource can refuse " +
		"such a write, by its fence. Without fences, every lock with leases loses updates under such faults."
	if !p.Run.Fenced {
		why = "This lock has no fences, so the register could not refuse late writes."
	}
	return markup.El("section", class("card"), text("h3", "Writes of late holders"),
		facts(
			fact("Writes that the register accepted", number(n.Writes)),
			fact("Late writes that it refused because of their fence", number(n.Stale)),
			fact("Updates that a register without fences lost", number(n.PlainLost)),
		),
		text("p", why, class("aside")))
}
