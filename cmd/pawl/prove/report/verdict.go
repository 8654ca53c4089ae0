package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-go/pawl/cmd/pawl/prove/check"
	"github.com/pawl-go/pawl/internal/markup"
	"github.com/pawl-go/pawl/internal/visible"
)

// outcome is the verdict in one line, and its class in the style.
func outcome(v *check.Verdict) (line, kind string) {
	faults := 0
	for _, n := range v.Numbers.FaultsByKind {
		faults += n
	}
	switch {
	case len(v.Violations) > 0:
		return "FAILED: " + headline(&v.Violations[gravest(v)]), "bad"
	case allBroken(v) > 0:
		return "FAILED: " + counted(allBroken(v), "violation"), "bad"
	case len(v.Blind) > 0:
		return "Proves nothing: " + lowered(visible.Text(v.Blind[0])), "some"
	}
	return "Held: " + counted(v.Numbers.Leases, "lease") + ", " + counted(faults, "fault") + ", no violation.", "good"
}

// gravest is the place of the violation for the headline: the first of the rule that
// matters most.
func gravest(v *check.Verdict) int {
	least := 0
	for i := range v.Violations {
		if gravity(v.Violations[i].Rule) < gravity(v.Violations[least].Rule) {
			least = i
		}
	}
	return least
}

// gravity is the place of a rule among all.
func gravity(key string) int {
	if i := slices.IndexFunc(rules, func(r rule) bool { return r.key == key }); i >= 0 {
		return i
	}
	return len(rules)
}

// link is the place of a violation in the timeline.
func link(n int) string { return fmt.Sprintf("#v%d", n+1) }

// numbered is a violation as the list, the timeline and the terminal call it.
func numbered(n int) string { return fmt.Sprintf("Violation %d", n+1) }

// lowered is a sentence after a colon.
func lowered(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	second, _ := utf8.DecodeRuneInString(s[n:])
	if unicode.IsUpper(first) && !unicode.IsUpper(second) {
		return string(unicode.ToLower(first)) + s[n:]
	}
	return s
}

func title(v *check.Verdict) string {
	line, _ := outcome(v)
	word, _, _ := strings.Cut(line, ":")
	return word + " · pawl prove"
}

// verdict is the top of the page.
func verdict(s *story, v *check.Verdict) markup.HTML {
	line, kind := outcome(v)
	parts := []markup.Part{class("verdict " + kind), markup.Attr("aria-label", "Verdict"), text("h1", line)}
	if len(v.Violations) > 0 {
		n := gravest(v)
		parts = append(parts, markup.El("p", foreign("span", v.Violations[n].Text), markup.Text(" "),
			text("a", "Show "+lowered(numbered(n)), markup.Link("href", link(n)), class("jump"))))
		if n := allBroken(v) - 1; n > 0 {
			parts = append(parts, markup.El("p", markup.El("a", markup.Link("href", "#violations"),
				markup.Text(counted(n, "more violation")))))
		}
	}
	parts = append(parts, checked(s, v))
	return markup.El("section", parts...)
}

// checked returns the basis of the verdict in one line: the number of rules, and their
// results.
func checked(s *story, v *check.Verdict) markup.HTML {
	count := map[string]int{}
	for _, r := range rules {
		count[r.result(s, v)]++
	}
	words := []string{}
	for _, x := range []struct{ result, says string }{
		{resultBroken, "broken"}, {resultHolds, "held"}, {resultNothing, "had nothing to look at"}, {resultOff, "not promised by this lock"},
	} {
		if n := count[x.result]; n > 0 {
			words = append(words, number(n)+narrow+x.says)
		}
	}
	if count[resultHolds] == len(rules) {
		words = []string{"all held"}
	}
	return markup.El("p", text("a", counted(len(rules), "rule"), markup.Link("href", "#rules")),
		markup.Text(" checked: "+strings.Join(words, ", ")+"."))
}

// remarks are the notices that belong to a verdict: without them it says too much.
func remarks(s *story, v *check.Verdict) markup.HTML {
	var all []markup.HTML
	remark := func(kind, sentence string) { all = append(all, text("li", sentence, class("notice "+kind))) }
	blind := v.Blind
	if allBroken(v) == 0 && len(blind) > 0 {
		blind = blind[1:] // the headline has the first
	} else if len(blind) > 0 {
		remark("some", "Besides, the run would prove nothing:")
	}
	for _, b := range blind {
		remark("some", visible.Text(b))
	}
	if s.run.Planted != "" {
		sentence := "This run has a planted bug, " + quoted(s.run.Planted) + ". "
		if allBroken(v) > 0 {
			remark("", sentence+"It shows that the checker can fail: the lock itself is not accused.")
		} else {
			remark("bad", sentence+"The checker did not find it.")
		}
	}
	if v.Announced > 0 {
		remark("some", "The checker excused "+counted(v.Announced, "overlap")+
			": this server may forget its last writes when it is killed or fails over, as the documentation says. "+
			"Two holders were possible then.")
	} else if s.run.Forgets {
		remark("", "This server may forget its last writes when it is killed or fails over, as the documentation says. "+
			"Two holders would be excused then; there was no such case.")
	}
	if len(all) == 0 {
		return markup.HTML{}
	}
	return list("remarks", all)
}
