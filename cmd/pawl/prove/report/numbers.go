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

// numbers returns the tables of what happened. None of it breaks a rule.
func (p *page) numbers() markup.HTML {
	n := &p.v.Numbers
	return markup.El("div", class("columns"),
		card("Leases",
			fact("Granted", number(n.Leases)),
			fact("Refused: others held it", number(n.Refused)),
			fact("Wait timed out", number(n.TimedOut)),
			fact("No answer, or an error", number(n.Unknown)),
			fact("Lost, and seen by the holder", number(n.Lost)),
			fact("of these, woken up by the lock", number(n.Woken)),
			fact("Held by a process that died", number(n.Died)),
			fact("Taken over by the next claim", number(n.TakenOver)),
		),
		card("Times",
			fact("Wait, median", some(n.WaitMedian)),
			fact("Wait, 99 of 100 below", some(n.WaitP99)),
			fact("Wait, longest", some(n.WaitMax)),
			fact("Release to next grant, median", some(n.HandoverMedian)),
			fact("Handovers", number(n.Handovers)),
			fact("Until a holder saw its loss, longest", some(n.MaxLossDelay)),
			fact("Times this machine kept a process from running", number(n.Pauses)),
			fact("of these, longest", some(n.LongestPause)),
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

func some(d time.Duration) string {
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

// faultTable lists how many faults of each kind did something, and how many did nothing.
func (p *page) faultTable() markup.HTML {
	did, idle := p.v.Numbers.FaultsByKind, map[string]int{}
	for _, f := range p.faults {
		if f.Hit == 0 {
			idle[f.Kind]++
		}
	}
	kinds := slices.Concat(history.Kinds(), slices.Sorted(maps.Keys(did)), slices.Sorted(maps.Keys(idle)))
	var rows [][2]markup.HTML
	for i, k := range kinds {
		if slices.Index(kinds, k) < i || did[k] == 0 && idle[k] == 0 && !slices.Contains(p.Run.Faults, k) {
			continue
		}
		value := number(did[k])
		if idle[k] > 0 {
			value += " (" + number(idle[k]) + " more did nothing)"
		}
		rows = append(rows, [2]markup.HTML{markup.Join(key(k), text("span", meaning[k], class("aside"))), markup.Text(value)})
	}
	if len(rows) == 0 {
		rows = append(rows, fact("None", "0"))
	}
	return card("Faults", rows...)
}

// meaning says what each kind of fault does.
var meaning = map[string]string{
	"stop":           " a process stands still for longer than the TTL",
	"kill":           " a process is killed",
	"crash":          " a process ends itself while it holds",
	"overstay":       " a holder works on after its loss",
	"cut":            " all connections are reset",
	"delay":          " everything takes longer",
	"reorder":        " one connection is late",
	"swallow":        " replies do not arrive",
	"silence":        " nothing arrives",
	"server-stop":    " the server stands still",
	"server-kill":    " the server is killed",
	"server-restart": " the server restarts",
	"failover":       " another server takes over",
}

// key returns an entry of a legend, with the colour that the style has for it.
func key(kind string) markup.HTML {
	colour := "other"
	if meaning[kind] != "" {
		colour = kind
	}
	return text("span", visible.Text(kind), class("key f-"+colour))
}

// lateWrites returns how many late writes the fences of this run refused.
func (p *page) lateWrites() markup.HTML {
	n := &p.v.Numbers
	why := "A holder that stands still cannot see that its lease is over, and may write late. Only the resource can refuse that " +
		"write, by its fence: without fences, each lock of this kind loses updates under such faults."
	if !p.Run.Fenced {
		why = "This lock has no fences, so the register could not refuse late writes."
	}
	return markup.El("section", class("card"), text("h3", "Writes of late holders"),
		facts(
			fact("Writes that the register accepted", number(n.Writes)),
			fact("Late writes that it refused, by their fence", number(n.Stale)),
			fact("Updates that a register without fences lost", number(n.PlainLost)),
		),
		text("p", why, class("aside")))
}
