package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// A rule has the page's texts for a rule of the checker.
type rule struct {
	key    string
	says   string // what is true if the rule holds
	broken string // a headline; %s is the name
	looked func(s *story, v *check.Verdict) (n int, what string)
	off    func(s *story, v *check.Verdict) string // why the run does not have it, or empty
}

func always(*story, *check.Verdict) string { return "" }

func ifFenced(s *story, _ *check.Verdict) string {
	if !s.run.Fenced {
		return "this lock has no fences"
	}
	return ""
}

func ifOrdered(s *story, _ *check.Verdict) string {
	if !s.run.Ordered {
		return "this lock promises no order"
	}
	return ""
}

// rules are all rules, those first that matter most.
var rules = []rule{
	{
		check.Overlap, "No two holders that exclude each other were sure of a name at the same time.", "two holders of %s",
		func(_ *story, v *check.Verdict) (int, string) { return v.Numbers.Leases, "lease" }, always,
	}, {
		check.Linearizable, "One order of the claims and releases of each name explains all answers (porcupine searches it).",
		"no order explains the answers on %s",
		func(_ *story, v *check.Verdict) (int, string) { return v.Numbers.PorcupineOperations, "operation" }, always,
	}, {
		check.FenceTwice, "No two leases of a name have the same fence.", "two leases of %s with one fence",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.fences, "fence" }, ifFenced,
	}, {
		check.FenceFalls, "A claim that was made after a grant got a greater fence than that grant.", "the fence of %s fell",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.fences, "fence" }, ifFenced,
	}, {
		check.StaleAccepted, "The register accepted no write of a holder after a later holder had used it.",
		"a write of an earlier holder of %s was accepted",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.writes, "write" }, ifFenced,
	}, {
		check.Register, "The register that checks fences has the value that its accepted writes give.",
		"the register of %s has a wrong value",
		func(_ *story, v *check.Verdict) (int, string) { return v.Numbers.Writes, "accepted write" }, ifFenced,
	}, {
		check.PlainLostInCalm, "The register that checks nothing lost no update that no fault explains.",
		"an update of %s was lost without a fault",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.writes, "write" }, always,
	}, {
		check.LostNotTold, "A holder saw that its lease was over within a second of the next grant, if its process ran.", "a holder of %s did not see its loss",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.ended, "lost lease" }, always,
	}, {
		check.ReleaseLied, "A release that said “held until now” was right.", "a release of %s was wrong",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.releases, "release" }, always,
	}, {
		check.Order, "Claims that waited were served in the order in which they had asked.", "the order on %s was wrong",
		func(_ *story, v *check.Verdict) (int, string) { return v.Numbers.QueuePairs, "pair of claims" }, ifOrdered,
	}, {
		check.Idle, "No name stayed free while claims waited for it.", "%s was free, and its waiters waited on",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.waited, "claim that waited" }, always,
	}, {
		check.AllOrNothing, "A claim of several names together got all of them, or none.", "a claim of several names got some, at %s",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.together, "such claim" }, always,
	}, {
		check.CalmLoss, "In the calm part no lease was lost and no claim failed, where the database answered in time.", "a loss of %s before the first fault",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.calmClaims, "claim" }, always,
	}, {
		check.Left, "After the last worker had closed, no name had a holder or a waiter.", "%s was not left free",
		func(s *story, _ *check.Verdict) (int, string) { return s.looked.left, "name" }, always,
	}, {
		check.WorkerFailed, "Each process of a worker ended as it should, or by a fault.", "a worker failed",
		func(s *story, _ *check.Verdict) (int, string) { return len(s.lives), "process" }, always,
	}, {
		check.RunFailed, "The run ended without an error.", "the run failed",
		func(*story, *check.Verdict) (int, string) { return 1, "run" }, always,
	},
}

func ruleOf(key string) rule {
	for _, r := range rules {
		if r.key == key {
			return r
		}
	}
	return rule{
		key: key, says: "The rule " + visible.Text(key) + " holds.", broken: visible.Text(key) + " of %s",
		looked: func(*story, *check.Verdict) (int, string) { return 0, "" }, off: always,
	}
}

// headline is a violation in a few words: "two holders of “m2” at 3 min 12.4 s".
func headline(x *check.Violation) string {
	r := ruleOf(x.Rule)
	words := r.broken
	if strings.Contains(words, "%s") {
		name := quoted(x.Name)
		if x.Name == "" {
			name = "a name"
		}
		words = fmt.Sprintf(strings.ReplaceAll(words, "%s", "%[1]s"), name)
	}
	return words + " at " + moment(x.From, 1)
}

// broken returns the number of times that a rule was broken.
func broken(v *check.Verdict, key string) int {
	kept := 0
	for i := range v.Violations {
		if v.Violations[i].Rule == key {
			kept++
		}
	}
	return max(kept, v.Count[key])
}

// allBroken returns the number of violations of all rules.
func allBroken(v *check.Verdict) int {
	n := 0
	for _, key := range brokenRules(v) {
		n += broken(v, key)
	}
	return n
}

func brokenRules(v *check.Verdict) []string {
	var keys []string
	for i := range v.Violations {
		if !slices.Contains(keys, v.Violations[i].Rule) {
			keys = append(keys, v.Violations[i].Rule)
		}
	}
	for key, n := range v.Count {
		if n > 0 && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// rulesTable says of each rule what it found, the broken ones first.
func rulesTable(s *story, v *check.Verdict) markup.HTML {
	all := slices.Clone(rules)
	for _, key := range brokenRules(v) {
		if !slices.ContainsFunc(all, func(r rule) bool { return r.key == key }) {
			all = append(all, ruleOf(key))
		}
	}
	var bad, good []markup.HTML
	for _, r := range all {
		if r.result(s, v) == resultBroken {
			bad = append(bad, ruleRow(s, v, r))
		} else {
			good = append(good, ruleRow(s, v, r))
		}
	}
	rows := markup.Join(append(bad, good...)...)
	return markup.El("div", class("sheet"), markup.El("table", class("rules"),
		markup.El("thead", markup.El("tr", text("th", "Rule"), text("th", "Looked at"), text("th", "Result"))),
		markup.El("tbody", rows)))
}

// The results of a rule, which are classes of the style, too.
const (
	resultBroken  = "bad"
	resultHolds   = "good"
	resultNothing = "none"
	resultOff     = "none off"
)

func (r *rule) result(s *story, v *check.Verdict) string {
	n, what := r.looked(s, v)
	switch {
	case broken(v, r.key) > 0:
		return resultBroken
	case r.off(s, v) != "":
		return resultOff
	case n == 0 && what != "":
		return resultNothing
	}
	return resultHolds
}

func ruleRow(s *story, v *check.Verdict, r rule) markup.HTML {
	n, what := r.looked(s, v)
	looked := "–"
	if what != "" {
		looked = plural(n, what)
	}
	if r.key == check.Linearizable && v.Numbers.PorcupineGaveUp > 0 {
		looked += "; it gave up on " + counted(v.Numbers.PorcupineGaveUp, "piece")
	}
	result := r.result(s, v)
	words := map[string]string{
		resultBroken: counted(broken(v, r.key), "violation"), resultHolds: "holds", resultNothing: "nothing to look at",
		resultOff: "not checked: " + r.off(s, v),
	}[result]
	return markup.El("tr",
		markup.El("th", markup.Attr("scope", "row"), markup.Text(r.says), markup.Text(" "), text("code", visible.Text(r.key), class("key"))),
		text("td", looked, markup.Attr("data-head", "Looked at")),
		text("td", words, class(result), markup.Attr("data-head", "Result")),
	)
}

// plural returns a number of things. The first word of "pair of claims" gets the ending.
func plural(n int, what string) string {
	first, rest, more := strings.Cut(what, " ")
	if more && (strings.HasPrefix(rest, "of ") || strings.HasPrefix(rest, "that ")) {
		return counted(n, first) + " " + rest
	}
	return counted(n, what)
}
