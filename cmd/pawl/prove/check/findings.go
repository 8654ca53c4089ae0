package check

import (
	"cmp"
	"slices"
)

// keep is the number of violations that a verdict keeps.
const keep = 1000

// findings collects what the rules find.
type findings struct {
	found     map[[2]string][]Violation // by rule and name; the first of each
	counts    map[string]int
	blind     []string
	announced int
}

func (f *findings) add(v Violation) {
	if f.counts == nil {
		f.counts, f.found = map[string]int{}, map[[2]string][]Violation{}
	}
	f.counts[v.Rule]++
	if key := [2]string{v.Rule, v.Name}; len(f.found[key]) < keep {
		f.found[key] = append(f.found[key], v)
	}
}

// full reports whether the text of another violation would not be kept.
func (f *findings) full(rule, name string) bool {
	if len(f.found[[2]string{rule, name}]) < keep {
		return false
	}
	f.counts[rule]++
	return true
}

// kept is the violations in the order of time: the first ones, and one of each rule.
func (f *findings) kept() []Violation {
	all := make([]Violation, 0, keep)
	for _, v := range f.found {
		all = append(all, v...)
	}
	slices.SortFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Name, b.Name), slices.Compare(a.Claims, b.Claims))
	})
	if len(all) <= keep {
		return all
	}
	room := keep - len(f.counts)
	had := map[string]bool{}
	return slices.DeleteFunc(all, func(v Violation) bool {
		switch {
		case !had[v.Rule]:
			had[v.Rule] = true
			return false
		case room > 0:
			room--
			return false
		}
		return true
	})
}

func (w *world) verdict() *Verdict {
	count := w.counts
	if count == nil {
		count = map[string]int{}
	}
	return &Verdict{
		Violations: w.kept(),
		Count:      count,
		Blind:      w.blind,
		Announced:  w.announced,
		Numbers:    w.numbers,
	}
}
