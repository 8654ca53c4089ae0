package report

import (
	"strings"

	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// outcome returns the verdict in one line, and its class in the style.
func (p *page) outcome() (line, kind string) {
	v, faults := p.v, 0
	for _, n := range v.Numbers.FaultsByKind {
		faults += n
	}
	switch {
	case len(v.Violations) > 0:
		return "FAILED: " + p.headline(&v.Violations[p.gravest]), "bad"
	case len(v.Weaknesses) > 0:
		return "Proves nothing: " + strings.ToLower(v.Weaknesses[0][:1]) + visible.Text(v.Weaknesses[0][1:]), "some"
	}
	return "Held: " + counted(v.Numbers.Leases, "lease") + ", " + counted(faults, "fault") + ", no violation.", "good"
}

// verdict returns the section at the top of the page.
func (p *page) verdict() markup.HTML {
	parts := []markup.Part{class("verdict " + p.verdictClass), markup.Attr("aria-label", "Verdict"), text("h1", p.verdictLine)}
	if len(p.v.Violations) > 0 {
		parts = append(parts, markup.El("p", foreign("span", p.v.Violations[p.gravest].Text), markup.Text(" "),
			text("a", "Show "+numbered(p.gravest), markup.Link("href", link(p.gravest)), class("jump"))))
		if n := p.violations - 1; n > 0 {
			parts = append(parts, markup.El("p", text("a", counted(n, "more violation"), markup.Link("href", "#violations"))))
		}
	}
	return markup.El("section", append(parts, p.checked())...)
}

// checked returns the number of rules and their results in one line.
func (p *page) checked() markup.HTML {
	count := map[string]int{}
	for _, r := range p.rules {
		count[p.result(r)]++
	}
	var words []string
	for _, x := range []struct{ result, text string }{
		{resultBroken, "broken"}, {resultHolds, "held"}, {resultNothing, "had nothing to look at"}, {resultOff, "not promised by this lock"},
	} {
		if n := count[x.result]; n > 0 {
			words = append(words, number(n)+narrow+x.text)
		}
	}
	if count[resultHolds] == len(p.rules) {
		words = []string{"all held"}
	}
	return markup.El("p", text("a", counted(len(p.rules), "rule"), markup.Link("href", "#rules")),
		markup.Text(" checked: "+strings.Join(words, ", ")+"."))
}

// remarks returns the notices that limit a verdict.
func (p *page) remarks() markup.HTML {
	var all []markup.HTML
	remark := func(kind, sentence string) { all = append(all, text("li", sentence, class("notice "+kind))) }
	weaknesses := p.v.Weaknesses
	if p.violations == 0 && len(weaknesses) > 0 {
		weaknesses = weaknesses[1:] // the headline has the first
	} else if len(weaknesses) > 0 {
		remark("some", "Even without a violation, the run would prove nothing:")
	}
	for _, b := range weaknesses {
		remark("some", visible.Text(b))
	}
	if p.Run.Planted != "" {
		sentence := "This run has a planted bug, " + quoted(p.Run.Planted) + ". "
		if p.violations > 0 {
			remark("", sentence+"It shows that the checker finds bugs; the violations say nothing about the lock itself.")
		} else {
			remark("bad", sentence+"The checker did not find it.")
		}
	}
	const forgets = "this server may forget its last writes when it is killed or fails over, as the documentation says. "
	if p.v.Announced > 0 {
		remark("some", "The checker excused "+counted(p.v.Announced, "overlap")+": "+forgets+"Two holders were possible then.")
	} else if p.Run.Forgets {
		remark("", "T"+forgets[1:]+"Two holders would be excused then; there was no such case.")
	}
	if len(all) == 0 {
		return markup.HTML{}
	}
	return list("remarks", all)
}
