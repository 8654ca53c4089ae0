package report

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// A page is the report without its data and script.
type page struct {
	*story
	drawn        *choice
	v            *check.Verdict
	rules        []rule // the most important first
	violations   int    // of all rules
	gravest      int    // the index of the headline's violation: the first of the most important broken rule
	verdictLine  string
	verdictClass string // of CSS
}

func newPage(s *story, d *choice, v *check.Verdict) *page {
	p := &page{story: s, drawn: d, v: v, rules: rulesOf(s, v)}
	for _, n := range v.Count {
		p.violations += n
	}
	for i, x := range v.Violations {
		if p.ruleIndex(x.Rule) < p.ruleIndex(v.Violations[p.gravest].Rule) {
			p.gravest = i
		}
	}
	p.verdictLine, p.verdictClass = p.outcome()
	return p
}

func (p *page) body() markup.HTML {
	return markup.Join(
		markup.El("a", class("skip"), markup.Link("href", "#main"), markup.Text("Skip to the content")),
		markup.El("header", class("top"),
			markup.El("p", class("brand"), text("span", "", class("mark"), markup.Attr("aria-hidden", "true")), markup.Text("Pawl")),
			markup.El("p", class("where"), text("code", "pawl prove"), p.contender(), markup.Text(" on "),
				foreign("b", cmp.Or(p.Run.Backend, "an unknown backend")))),
		markup.El("main", id("main"),
			p.verdict(),
			p.remarks(),
			p.summary(),
			p.timeline(),
			p.violationList(),
			text("h2", "Checked rules", id("rules")),
			p.rulesTable(),
			text("h2", "Numbers", id("numbers")),
			p.numbers(),
			text("h2", "The run, and how to repeat it", id("run")),
			p.repeat(),
		),
		markup.El("footer", text("p", "Times count from the begin of the run, on one monotonic clock. "+
			"All worker processes ran on one host and read that clock.")),
	)
}

// contender names the lock if it is not Pawl.
func (p *page) contender() markup.HTML {
	if p.Run.Lock == "" || p.Run.Lock == "pawl" {
		return markup.HTML{}
	}
	return markup.Join(markup.Text(" of "), foreign("b", p.Run.Lock))
}

// summary returns a row of counts, by which a reader can judge the verdict.
func (p *page) summary() markup.HTML {
	var all []markup.HTML
	fact := func(value, what, kind string) {
		all = append(all, markup.El("li", class(strings.TrimSpace("count "+kind)), text("b", value), markup.Text(" "+what)))
	}
	countFact := func(n int, one, kind string) {
		fact(number(n), strings.TrimPrefix(counted(n, one), number(n)+narrow), kind)
	}
	kind := ""
	if p.violations > 0 {
		kind = "bad"
	}
	countFact(p.violations, "violation", kind)
	countFact(p.v.Numbers.Leases, "lease", "")
	fact(number(p.v.Numbers.Lost), "of them lost", "")
	countFact(p.Run.Workers, "worker", "")
	countFact(len(p.names.list), "name", "")
	fact(length(time.Duration(p.Run.TTL)), "TTL", "")
	fact(length(p.v.Numbers.Took), "long", "")
	return list("counts", all)
}

// violationList lists the violations, the ones of the most important rules first. Each is
// a link that the script follows to a place in the timeline.
func (p *page) violationList() markup.HTML {
	if p.violations == 0 {
		return markup.HTML{}
	}
	all := text("h2", "Violations", id("violations"))
	for _, r := range p.rules {
		if p.v.Count[r.key] > 0 {
			all = markup.Join(all, p.violationsOf(r))
		}
	}
	return all
}

// shownViolations is the number of violations of a rule that are visible without a click.
const shownViolations = 5

func (p *page) violationsOf(r rule) markup.HTML {
	var items []markup.HTML
	for i, x := range p.v.Violations {
		if x.Rule == r.key {
			items = append(items, p.violationItem(i))
		}
	}
	times, kept, all := "once", len(items), p.v.Count[r.key]
	if all > 1 {
		times = counted(all, "time")
	}
	parts := []markup.Part{class("card"),
		markup.El("h3", markup.Text("Broken "+times+": "+r.statement+" "), text("span", visible.Text(r.key), class("badge bad"))),
		list("violations", items[:min(kept, shownViolations)])}
	if more := kept - shownViolations; more > 0 {
		parts = append(parts, markup.El("details", text("summary", number(more)+" more"), list("violations", items[shownViolations:])))
	}
	if all > kept {
		parts = append(parts, text("p", "The checker kept "+number(kept)+" of these "+number(all)+".", class("aside")))
	}
	return markup.El("section", parts...)
}

func (p *page) violationItem(i int) markup.HTML {
	x := &p.v.Violations[i]
	when := moment(x.From, 3)
	if x.To > x.From {
		when += " for " + length(time.Duration(x.To-x.From))
	}
	return markup.El("li",
		markup.El("a", class("jump"), markup.Link("href", link(i)), markup.Text("V"+numbered(i)[1:]+": "+p.headline(x))),
		markup.El("p", foreign("span", x.Text)),
		text("p", when+claimsOf(x), class("aside")))
}

// link returns the link to a violation in the timeline.
func link(i int) string { return "#v" + strconv.Itoa(i+1) }

// numbered returns the name of a violation in the list, the timeline and the terminal.
func numbered(i int) string { return "violation " + strconv.Itoa(i+1) }

func claimsOf(x *check.Violation) string {
	var ids []string
	for _, id := range x.Claims {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	switch last := len(ids) - 1; {
	case last < 0:
		return ""
	case last == 0:
		return ", claim " + ids[0]
	case last >= 8:
		return ", " + counted(len(ids), "claim")
	default:
		return ", claims " + strings.Join(ids[:last], ", ") + " and " + ids[last]
	}
}

// repeat describes the run, and how to repeat it.
func (p *page) repeat() markup.HTML {
	r := &p.Run
	var names []markup.HTML
	for i, n := range r.Names {
		if i > 0 {
			names = append(names, markup.Text(", "))
		}
		kind := n.Kind
		if n.Limit > 1 {
			kind += " of " + strconv.Itoa(n.Limit)
		}
		names = append(names, foreign("b", n.Name), markup.Text(" ("+visible.Text(kind)+")"))
	}
	foreignFact := func(what, value string) [2]markup.HTML {
		return [2]markup.HTML{markup.Text(what), foreign("span", cmp.Or(value, "unknown"))}
	}
	command := func(s string) markup.HTML { return foreign("code", s, class("command")) }
	return markup.El("div", class("card"),
		facts(
			foreignFact("Lock", r.Lock),
			foreignFact("Version of pawl", r.Version),
			foreignFact("Backend", r.Backend),
			foreignFact("Version of the server", r.Server),
			foreignFact("Begun", r.Begun),
			fact("Seed", strconv.FormatUint(r.Seed, 10)),
			fact("TTL of each lease", length(time.Duration(r.TTL))),
			fact("Chosen faults", visible.Text(cmp.Or(strings.Join(r.Faults, ", "), "none"))),
			[2]markup.HTML{markup.Text("Names"), markup.Join(names...)},
			[2]markup.HTML{markup.Text("To repeat the run"), command(cmp.Or(r.Command, "pawl prove"))},
			[2]markup.HTML{markup.Text("To check the history again"), command("pawl prove --check FILE")},
		),
		text("p", "The seed decides which faults happen when, and which claims the workers make. The system decides in which "+
			"order processes run, so a second run is similar but not equal. The history is the evidence: each check of its "+
			"file gives the same verdict.", class("aside")))
}
