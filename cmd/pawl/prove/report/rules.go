package report

import (
	"slices"
	"strings"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/cmd/pawl/prove/history"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// A rule of the checker, as the page shows it.
type rule struct {
	key           string
	broken        string // the headline of a violation; %s is the name
	cases         int    // the number of cases in the run to which the rule applies
	what          string // the noun for one case
	whyNotChecked string // empty if the rule was checked
	statement     string
}

// rulesOf returns all rules, the most important first.
func rulesOf(s *story, v *check.Verdict) []rule {
	n := &v.Numbers
	_, calmEnd, _ := s.Phase(history.Calm)
	fences := s.count(func(c *claim) bool { return c.Got != 0 && c.Fence != 0 })
	lost := s.count(func(c *claim) bool { return c.end == endLost })
	released := s.count(func(c *claim) bool { return c.end == endReleased })
	waited := s.count(func(c *claim) bool { return c.Got != 0 && c.How != history.Try })
	together := s.count(func(c *claim) bool { return c.Group != 0 && c.Group == c.ID })
	early := s.count(func(c *claim) bool { return c.Asked < calmEnd })
	var unfenced, unordered string
	if !s.Run.Fenced {
		unfenced = "this lock has no fences"
	}
	if !s.Run.Ordered {
		unordered = "this lock promises no order"
	}
	return []rule{
		{check.Overlap, "two holders of %s", n.Leases, "lease", "",
			"No two holders that exclude each other were sure of a name at the same time."},
		{check.Linearizable, "no order explains the answers on %s", n.PorcupineOperations, "operation", "",
			"One order of the claims and releases of each name explains all answers (porcupine searches it)."},
		{check.FenceTwice, "two leases of %s with one fence", fences, "fence", unfenced,
			"No two leases of a name have the same fence."},
		{check.FenceFalls, "the fence of %s fell", fences, "fence", unfenced,
			"A claim that was made after a grant got a greater fence than that grant."},
		{check.StaleAccepted, "a write of an earlier holder of %s was accepted", len(s.Writes), "write", unfenced,
			"The register accepted no write of a holder after a later holder had used it."},
		{check.Register, "the register of %s has a wrong value", n.Writes, "accepted write", unfenced,
			"The register that checks fences has the value that its accepted writes give."},
		{check.PlainLostInCalm, "an update of %s was lost without a fault", len(s.Writes), "write", "",
			"The register that checks no fences lost updates only where a fault explains it."},
		{check.LossNotSeen, "a holder of %s did not see its loss", lost, "lost lease", "",
			"Within a second of the next grant the earlier holder saw that its lease was over, if its process ran."},
		{check.ReleaseLied, "a release of %s was wrong", released, "release", "",
			"If a release returned OK, the lease was held until then."},
		{check.Order, "the order on %s was wrong", n.QueuePairs, "pair of claims", unordered,
			"Claims that waited were served in the order in which they had asked."},
		{check.Idle, "%s was free, and its waiters kept waiting", waited, "claim that waited", "",
			"No name stayed free while claims waited for it."},
		{check.AllOrNothing, "a claim of several names got only some, at %s", together, "such claim", "",
			"A claim of several names together got all of them, or none."},
		{check.CalmLoss, "a loss of %s before the first fault", early, "claim", "",
			"In the calm phase no lease was lost and no claim failed if the database answered in time."},
		{check.Left, "%s was not left free", len(s.Left), "name", "",
			"After the last worker had closed, no name had a holder or a waiter."},
		{check.WorkerFailed, "a worker failed", len(s.Workers), "process", "",
			"Each process of a worker ended properly or by a fault."},
		{check.RunFailed, "the run failed", 1, "run", "",
			"The run ended without an error."},
	}
}

// The results of a rule. They are also CSS classes.
const (
	resultBroken  = "bad"
	resultHolds   = "good"
	resultNothing = "none"
	resultOff     = "none off"
)

func (p *page) result(r rule) string {
	switch {
	case p.v.Count[r.key] > 0:
		return resultBroken
	case r.whyNotChecked != "":
		return resultOff
	case r.cases == 0:
		return resultNothing
	}
	return resultHolds
}

// ruleIndex returns the index of a rule. The most important rule has the index 0. A test
// checks that rulesOf has a rule for each key of the checker.
func (p *page) ruleIndex(key string) int {
	return slices.IndexFunc(p.rules, func(r rule) bool { return r.key == key })
}

// headline returns the headline of a violation: "two holders of “m2” at 3 min 12.4 s".
func (p *page) headline(x *check.Violation) string {
	return strings.ReplaceAll(p.rules[p.ruleIndex(x.Rule)].broken, "%s", quoted(x.Name)) + " at " + moment(x.From, 1)
}

// rulesTable lists the rules with their results, the broken ones first.
func (p *page) rulesTable() markup.HTML {
	var bad, good []markup.HTML
	for _, r := range p.rules {
		if p.v.Count[r.key] > 0 {
			bad = append(bad, p.ruleRow(r))
		} else {
			good = append(good, p.ruleRow(r))
		}
	}
	return markup.El("div", class("sheet"), markup.El("table", class("rules"),
		markup.El("thead", markup.El("tr", text("th", "Rule"), text("th", "Looked at"), text("th", "Result"))),
		markup.El("tbody", markup.Join(append(bad, good...)...))))
}

func (p *page) ruleRow(r rule) markup.HTML {
	looked := plural(r.cases, r.what)
	if n := p.v.Numbers.PorcupineGaveUp; r.key == check.Linearizable && n > 0 {
		looked += "; it gave up on " + counted(n, "piece")
	}
	result := p.result(r)
	words := map[string]string{
		resultBroken: counted(p.v.Count[r.key], "violation"), resultHolds: "holds", resultNothing: "nothing to look at",
		resultOff: "not checked: " + r.whyNotChecked,
	}[result]
	return markup.El("tr",
		markup.El("th", markup.Attr("scope", "row"), markup.Text(r.statement+" "), text("code", visible.Text(r.key), class("key"))),
		text("td", looked, markup.Attr("data-head", "Looked at")),
		text("td", words, class(result), markup.Attr("data-head", "Result")),
	)
}
