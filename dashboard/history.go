package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/overview"
	"github.com/pawl-go/pawl/internal/visible"
)

// history shows the leases of a name since the process started: as a timeline, as charts,
// and as a table with the same content.
func (h *Handler) history(m renderContext, name string) markup.HTML {
	record := h.overview.History()
	leases := record.Of(name)
	// The picture ends up to 5 s after now, so that it changes only each 5 s.
	end := m.now.Add(m.view.Offset).Truncate(5 * time.Second).Add(5 * time.Second)
	var rows []markup.HTML
	for i := range leases {
		rows = append(rows, m.historyRow(&leases[i]))
	}
	charts := markup.HTML{}
	if len(leases) > 0 {
		charts = markup.Join(timeline(leases, end), durationCharts(leases))
	}
	return markup.Join(charts,
		markup.El("div", class("sheet"), tableOf("Recent leases, the latest first", "Nothing was seen yet.",
			[]string{"Fence", "Holder", "Waited", "Held", "Ended"}, rows)),
		text("p", fmt.Sprintf("Remembered here, by this process, since %s: the last %d leases of each of the last %d names. "+
			"Leases that began and ended between two scans are missing.",
			record.Began.UTC().Format("2006-01-02 15:04 MST"), overview.MaxHistoryLeases, overview.MaxHistoryNames), class("aside")))
}

// endWords says how a lease ended.
var endWords = map[overview.End]string{
	overview.Held: "held now", overview.Released: "released", overview.Expired: "lost: not renewed in time",
	overview.Broken: "lost: broken", overview.Unseen: "ended; how is not known",
}

func isLost(l *overview.PastLease) bool { return l.End == overview.Expired || l.End == overview.Broken }

func (m renderContext) historyRow(l *overview.PastLease) markup.HTML {
	state, held := "", markup.Text(preciseDuration(l.Held))
	if l.End == overview.Held {
		held = m.ago(l.Since)
	}
	waited := markup.Text("not seen waiting")
	if l.Waited > 0 {
		waited = markup.Text(preciseDuration(l.Waited))
	}
	words := endWords[l.End]
	if l.By != "" {
		words += " by " + visible.Text(l.By)
	}
	ended := []markup.Part{markup.Text(words)}
	if isLost(l) {
		state, ended = "late", []markup.Part{badge("bad", words)}
	}
	if !l.Ended.IsZero() {
		ended = append(ended, markup.Text(", "), m.agoLocal(l.Ended), markup.Text(" ago"))
	}
	return tableRow(state, fenceOf(l.Fence), cell("Holder", owner(l.Owner)), cell("Waited", waited), cell("Held", held), cell("Ended", ended...))
}

// The sizes of the pictures, which the browser scales to the page.
const (
	pictureWidth = 960
	laneHeight   = 26
	maxLanes     = 12
	maxBars      = 50
	barsHeight   = 120
)

func svgBox(class_ string, x, y, width, height float64, parts ...markup.Part) markup.HTML {
	n := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
	return markup.El("rect", append(parts, class(class_), markup.Attr("x", n(x)), markup.Attr("y", n(y)), markup.Attr("width", n(width)), markup.Attr("height", n(height)))...)
}

func svgText(class_, words string, x, y float64) markup.HTML {
	return text("text", words, class(class_), markup.Attr("x", strconv.FormatFloat(x, 'f', 1, 64)), markup.Attr("y", strconv.FormatFloat(y, 'f', 1, 64)))
}

// picture fills the width of the page. On a narrow page, for example on a phone, the
// reader scrolls it sideways, with a finger or the keyboard.
func picture(words string, height int, parts ...markup.Part) markup.HTML {
	svg := markup.El("svg", append([]markup.Part{
		markup.Attr("role", "img"), markup.Attr("aria-label", words), class("picture"),
		markup.Attr("viewBox", fmt.Sprintf("0 0 %d %d", pictureWidth, height)),
	}, parts...)...)
	return markup.El("div", class("scroll"), markup.Attr("tabindex", "0"), markup.Attr("role", "group"), markup.Attr("aria-label", "Picture"), svg)
}

// timeline shows who held the name when, a lane for each lease, and how long it waited.
func timeline(leases []overview.PastLease, end time.Time) markup.HTML {
	leases = slices.Clone(leases[:min(len(leases), maxLanes)])
	slices.Reverse(leases)
	begin := end
	for i := range leases {
		if t := leases[i].Since.Add(-leases[i].Waited); t.Before(begin) {
			begin = t
		}
	}
	all := max(end.Sub(begin), time.Second)
	const left, right = 190.0, pictureWidth - 10.0
	x := func(t time.Time) float64 {
		return left + (right-left)*min(1, max(0, t.Sub(begin).Seconds()/all.Seconds()))
	}
	var parts []markup.Part
	for i := range leases {
		l, y := &leases[i], float64(i*laneHeight)
		held, class_ := l.Since.Add(l.Held), "held"
		switch {
		case l.End == overview.Held:
			held, class_ = end, "held now"
		case isLost(l):
			class_ = "held lost"
		}
		parts = append(parts, svgText("who", shortName(overview.Process(l.Owner)), 0, y+17))
		if l.Waited > 0 {
			from := x(l.Since.Add(-l.Waited))
			parts = append(parts, svgBox("waited", from, y+10, max(1, x(l.Since)-from), 6))
		}
		parts = append(parts, svgBox(class_, x(l.Since), y+5, max(3, x(held)-x(l.Since)), 16, markup.Attr("rx", "3")))
	}
	height := len(leases)*laneHeight + 22
	parts = append(parts, svgText("axis", briefDuration(all)+" ago", left, float64(height-4)), text("text", "now", class("axis end"),
		markup.Attr("x", strconv.Itoa(int(right))), markup.Attr("y", strconv.Itoa(height-4))))
	return markup.El("figure", class("card"), picture("Who held the name when, and waited before. The table below says the same.", height, parts...),
		markup.El("figcaption", text("span", "waited", class("key waited")), text("span", "held", class("key held")), text("span", "lost", class("key lost"))))
}

// shortName cuts a name to the width in front of a lane.
func shortName(s string) string {
	s = visible.Text(s)
	if r := []rune(s); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return s
}

// durationCharts shows how long leases waited and were held, in two charts. Each chart
// has its own scale, because a job of hours may wait for a second.
func durationCharts(leases []overview.PastLease) markup.HTML {
	var endedLeases []overview.PastLease
	for i := range leases {
		if leases[i].End != overview.Held && len(endedLeases) < maxBars {
			endedLeases = append(endedLeases, leases[i])
		}
	}
	if len(endedLeases) < 2 {
		return markup.HTML{}
	}
	slices.Reverse(endedLeases)
	var waits, holds time.Duration
	for i := range endedLeases {
		waits, holds = max(waits, endedLeases[i].Waited), max(holds, endedLeases[i].Held)
	}
	chart := func(top float64, longest time.Duration, words, class_ string, of func(*overview.PastLease) time.Duration) (parts []markup.Part) {
		const left = 190.0
		step := min((pictureWidth-left)/float64(len(endedLeases)), 40)
		parts = append(parts, svgText("who", words, 0, top+18), svgText("axis", "longest "+preciseDuration(longest), 0, top+36))
		for i := range endedLeases {
			height := float64(barsHeight-14) * of(&endedLeases[i]).Seconds() / max(longest.Seconds(), 1e-6)
			c := class_
			if isLost(&endedLeases[i]) && class_ == "held" {
				c = "held lost"
			}
			parts = append(parts, svgBox(c, left+float64(i)*step, top+barsHeight-height, max(1, step-3), height))
		}
		return append(parts, svgBox("base", left, top+barsHeight, pictureWidth-left, 1))
	}
	parts := chart(0, waits, "waited", "waited", func(l *overview.PastLease) time.Duration { return l.Waited })
	parts = append(parts, chart(barsHeight+12, holds, "held", "held", func(l *overview.PastLease) time.Duration { return l.Held })...)
	return markup.El("figure", class("card"), picture(fmt.Sprintf("How long the last %d leases waited, %s at most, and were held, %s at most.",
		len(endedLeases), preciseDuration(waits), preciseDuration(holds)), 2*barsHeight+16, parts...), text("figcaption", "Each lease of the table, the latest on the right."))
}
