package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/markup"
)

// timeline returns the elements that the script fills, and a notice if scripts are off.
func (p *page) timeline() markup.HTML {
	parts := []markup.Part{
		id("timeline"), markup.Attr("hidden", ""),
		text("h2", "Timeline", id("timeline-head")),
		p.thinning(),
		p.controls(),
		markup.El("p", class("now"), text("span", "", id("caption")), text("span", "", id("window"))),
		markup.El("div", class("sheet"),
			markup.El("canvas", id("overview"), markup.Attr("aria-hidden", "true")),
			markup.El("div", id("view"), markup.El("div", id("room"),
				markup.El("canvas", id("canvas"), markup.Attr("tabindex", "0"), markup.Attr("role", "application"),
					markup.Attr("aria-roledescription", "timeline"), markup.Attr("aria-label", "All leases and faults"),
					markup.Attr("aria-describedby", "keys"))))),
		p.legend(),
		markup.El("div", id("chosen"), class("card"), markup.Attr("role", "status"), markup.Attr("hidden", "")),
		help(),
		text("div", "", id("tip"), markup.Attr("hidden", ""), markup.Attr("aria-hidden", "true")),
	}
	return markup.Join(
		markup.El("section", parts...),
		markup.El("p", class("notice"), id("unscripted"),
			markup.Text("The timeline needs scripts, which are off in this browser. Everything else is below.")),
	)
}

// thinning returns the sentences about the claims that the timeline omits.
func (p *page) thinning() markup.HTML {
	d := p.drawn
	if len(d.claims) == len(p.claims) {
		return markup.HTML{}
	}
	of := "all"
	drawn, all := p.countAbnormal(d)
	if drawn < all {
		of = number(drawn) + " of the"
	}
	words := fmt.Sprintf("The timeline draws %s of %s: %s %s that were lost, died or have no known end, "+
		"the claims of all violations, the claims nearest to violations and to the begins and ends of faults, "+
		"and all claims from %s to %s. A grey line below the phases marks the times in which it leaves out claims. There, the shade of "+
		"a name is the share of the time for which it was held, and only the waits of drawn claims are shown. The check, the chart of leases above the timeline and all numbers count all claims.",
		number(len(d.claims)), counted(len(p.claims), "claim"), of, counted(all, "claim"), moment(d.sample[0], 1), moment(d.sample[1], 1))
	return text("p", words, class("notice"), id("thinned"))
}

func (p *page) controls() markup.HTML {
	b := func(name, words, title string, parts ...markup.Part) markup.HTML {
		return text("button", words, append(parts, markup.Attr("type", "button"), id(name), markup.Attr("title", title))...)
	}
	group := func(name string, parts ...markup.Part) markup.HTML {
		return markup.El("div", append(parts, class("group"), markup.Attr("role", "group"), markup.Attr("aria-label", name))...)
	}
	choice := func(name, words string) markup.HTML { // the script adds the other options
		return markup.El("label", markup.Text(words+" "), markup.El("select", id(name), text("option", "all", markup.Int("value", -1))))
	}
	var jumps []markup.Part
	if len(p.v.Violations) > 0 {
		jumps = append(jumps, b("violation-before", "‹", "Violation before (Shift+V)", markup.Attr("aria-label", "Violation before")),
			b("violation-next", "Next violation ›", "Next violation (V)", class("danger")))
	}
	jumps = append(jumps, b("loss-before", "‹", "Loss before (Shift+L)", markup.Attr("aria-label", "Loss before")),
		b("loss-next", "Next loss ›", "Next loss (L)"))
	return markup.El("div", class("controls"),
		group("Zoom", b("out", "−", "Zoom out (-)", markup.Attr("aria-label", "Zoom out")),
			b("in", "+", "Zoom in (+)", markup.Attr("aria-label", "Zoom in")), b("all", "All", "The whole run (0)")),
		group("Jump", jumps...),
		group("Filter", choice("name", "Name"), choice("worker", "Worker"),
			markup.El("label", class("check"), markup.El("input", markup.Attr("type", "checkbox"), id("losses")),
				markup.Text(" only losses")),
			markup.El("label", class("check"), markup.El("input", markup.Attr("type", "checkbox"), id("rows")),
				markup.Text(" a row per worker"))),
	)
}

// legend explains the colours of leases, marks and faults.
func (p *page) legend() markup.HTML {
	entry := func(class_, words string) markup.HTML {
		return markup.El("li", text("span", words, class("key "+class_)))
	}
	leases := []markup.HTML{
		entry("e-released", "held, released"), entry("e-lost", "held, lost"), entry("e-died", "held, process died"),
		entry("e-unknown", "held, end unknown"), entry("e-unsure", "perhaps still held"), entry("e-late", "works on after the loss"),
		entry("e-wait", "waits"), entry("e-refused", "asks, gets nothing"),
		entry("m-stale", "late write refused"), entry("m-lost", "update lost without fences"),
	}
	kinds := map[string]bool{}
	for _, f := range p.faults {
		kinds[f.Kind] = true
	}
	var faults []markup.HTML
	for _, k := range slices.Concat(history.Kinds(), slices.Sorted(maps.Keys(kinds))) {
		if kinds[k] {
			faults = append(faults, markup.El("li", legendKey(k)))
		}
		delete(kinds, k)
	}
	return markup.El("div", class("legends"),
		markup.El("div", text("h3", "Leases"), list("legend", leases)),
		markup.El("div", text("h3", "Faults"), list("legend", faults)))
}

func help() markup.HTML {
	keys := func(keys, does string) markup.HTML { return markup.El("li", text("kbd", keys), markup.Text(" "+does)) }
	return markup.El("details", class("help"),
		text("summary", "How to move in the timeline"),
		markup.El("div", id("keys"),
			text("p", "Drag to move the timeline. To choose a time, drag with Shift, or drag in the chart above the timeline. After a "+
				"click into the timeline, the wheel zooms; with Ctrl it always zooms. Shift and the wheel move the timeline. A click on a lease "+
				"or a fault shows its details below. While the timeline has the focus:"),
			list("keys", []markup.HTML{
				keys("+ -", "zoom"), keys("← →", "move"), keys("↑ ↓", "other rows"), keys("0", "the whole run"),
				keys("V", "next violation"), keys("L", "next loss"), keys("Shift", "with V or L: the previous one"),
				keys(". ,", "next and previous lease of the row"), keys("Esc", "choose nothing"),
			})))
}
