package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// page is the body of the page, without the data and the script.
func page(s *story, d *choice, v *check.Verdict) markup.HTML {
	return markup.Join(
		markup.El("a", class("skip"), markup.Link("href", "#main"), markup.Text("Skip to the content")),
		markup.El("header", class("top"),
			markup.El("p", class("brand"), text("span", "", class("mark"), markup.Attr("aria-hidden", "true")), markup.Text("Pawl")),
			markup.El("p", class("where"), text("code", "pawl prove"), contender(s), markup.Text(" on "),
				foreign("b", or(s.run.Backend, "an unknown backend")))),
		markup.El("main", markup.Attr("id", "main"),
			verdict(s, v),
			remarks(s, v),
			summary(s, v),
			timeline(s, d, v),
			violations(v),
			text("h2", "What was checked", markup.Attr("id", "rules")),
			rulesTable(s, v),
			text("h2", "Numbers", markup.Attr("id", "numbers")),
			numbers(s, v),
			text("h2", "What was run, and how to run it again", markup.Attr("id", "run")),
			repeat(s),
		),
		markup.El("footer", text("p", "Times are of one monotonic clock, from the begin of the run. "+
			"All worker processes ran on one host and read that clock.")),
	)
}

// contender names the lock, if it is not Pawl's.
func contender(s *story) markup.HTML {
	if s.run.Lock == "" || s.run.Lock == "pawl" {
		return markup.HTML{}
	}
	return markup.Join(markup.Text(" of "), foreign("b", s.run.Lock))
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// summary returns the facts that a reader needs to judge the verdict, in one row.
func summary(s *story, v *check.Verdict) markup.HTML {
	var all []markup.HTML
	fact := func(value, what, kind string) {
		all = append(all, markup.El("li", class(strings.TrimSpace("count "+kind)), text("b", value), markup.Text(" "+what)))
	}
	many := func(n int, one, kind string) {
		fact(number(n), strings.TrimPrefix(counted(n, one), number(n)+narrow), kind)
	}
	kind := ""
	if allBroken(v) > 0 {
		kind = "bad"
	}
	many(allBroken(v), "violation", kind)
	many(v.Numbers.Leases, "lease", "")
	fact(number(v.Numbers.Lost), "of them lost", "")
	many(s.workers(), "worker", "")
	many(len(s.names.list), "name", "")
	fact(length(time.Duration(s.run.TTL)), "TTL", "")
	fact(length(v.Numbers.Took), "long", "")
	return list("counts", all)
}

// violations lists them, those first of the rules that matter most. Each is a link that
// the script turns into a place in the timeline.
func violations(v *check.Verdict) markup.HTML {
	if allBroken(v) == 0 {
		return markup.HTML{}
	}
	keys := brokenRules(v)
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(gravity(a), gravity(b)) })
	parts := []markup.HTML{text("h2", "Violations", markup.Attr("id", "violations"))}
	for _, key := range keys {
		parts = append(parts, violationsOf(v, key))
	}
	return markup.Join(parts...)
}

// shownViolations is the number of violations of a rule that the page shows at once.
const shownViolations = 5

func violationsOf(v *check.Verdict, key string) markup.HTML {
	var first, more []markup.HTML
	for i := range v.Violations {
		switch {
		case v.Violations[i].Rule != key:
		case len(first) < shownViolations:
			first = append(first, violationItem(v, i))
		default:
			more = append(more, violationItem(v, i))
		}
	}
	r := ruleOf(key)
	kept, all := len(first)+len(more), broken(v, key)
	parts := []markup.Part{class("card"),
		markup.El("h3", markup.Text("Broken "+times(all)+": "+r.says+" "), text("span", visible.Text(key), class("badge bad"))),
		list("violations", first)}
	if len(more) > 0 {
		parts = append(parts, markup.El("details", text("summary", number(len(more))+" more"), list("violations", more)))
	}
	if all > kept {
		parts = append(parts, text("p", "The checker kept "+number(kept)+" of these "+number(all)+".", class("aside")))
	}
	return markup.El("section", parts...)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return counted(n, "time")
}

func violationItem(v *check.Verdict, i int) markup.HTML {
	x := &v.Violations[i]
	when := moment(x.From, 3)
	if x.To > x.From {
		when += " for " + length(time.Duration(x.To-x.From))
	}
	return markup.El("li",
		markup.El("a", class("jump"), markup.Link("href", link(i)), markup.Text(numbered(i)+": "+headline(x))),
		markup.El("p", foreign("span", x.Text)),
		text("p", when+claimsOf(x), class("aside")))
}

func claimsOf(x *check.Violation) string {
	switch n := len(x.Claims); {
	case n == 0:
		return ""
	case n == 1:
		return ", claim " + strconv.FormatInt(x.Claims[0], 10)
	case n > 8:
		return ", " + counted(n, "claim")
	}
	var ids []string
	for _, id := range x.Claims {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	last := len(ids) - 1
	return ", claims " + strings.Join(ids[:last], ", ") + " and " + ids[last]
}

// repeat says what was run, and how a reader repeats it.
func repeat(s *story) markup.HTML {
	r := &s.run
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
	kinds := "none"
	if len(r.Faults) > 0 {
		kinds = visible.Text(strings.Join(r.Faults, ", "))
	}
	rows := [][2]markup.HTML{
		{markup.Text("Lock"), foreign("span", or(r.Lock, "unknown"))},
		{markup.Text("Version of pawl"), foreign("span", or(r.Version, "unknown"))},
		{markup.Text("Backend"), foreign("span", or(r.Backend, "unknown"))},
		{markup.Text("Version of the server"), foreign("span", or(r.Server, "unknown"))},
		{markup.Text("Begun"), foreign("span", or(r.Begun, "unknown"))},
		fact("Seed", strconv.FormatUint(r.Seed, 10)),
		fact("TTL of each lease", length(time.Duration(r.TTL))),
		fact("Faults that were chosen", kinds),
		{markup.Text("Names"), markup.Join(names...)},
		{markup.Text("To run it again"), command(or(r.Command, "pawl prove"))},
		{markup.Text("To check the history again"), command("pawl prove --check FILE")},
	}
	return markup.El("div", class("card"), facts(rows...),
		text("p", "The seed decides which faults come when, and what the workers do. The order in which processes run is "+
			"decided by the system, so a second run is similar, not the same. The history is the evidence: the check of a "+
			"file gives the same verdict each time.", class("aside")))
}

// command shows a command as it is typed.
func command(s string) markup.HTML {
	return markup.El("code", class("command"), markup.El("bdi", markup.Text(visible.Text(s))))
}
