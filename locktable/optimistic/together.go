package optimistic

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// atATime is the number of steps that are computed before they are swapped. A client
// computes some hundred steps within a window, even on a busy machine; beyond
// stepsPerWindow, each step makes the window wider by windowPerStep. If more than
// retryTogetherAbove swaps failed, the table tries their steps together once more. It
// tries the steps that were late again in parts: quarters, then sixteenths, and so on. It
// tries the rest together as long as each try halves it, and takes the steps that are
// left one by one.
const (
	atATime            = 1024
	stepsPerWindow     = 500
	windowPerStep      = 100 * time.Microsecond
	retryTogetherAbove = 1
	lateParts          = 4
)

// A group is the steps of one name, by their index, in their order. They share a swap.
type group []int

// groupsOf returns the groups of some steps.
func groupsOf(steps []locktable.Step) (groups []group) {
	which := make(map[string]int, len(steps))
	for i, s := range steps {
		k, known := which[s.Name]
		if !known {
			k = len(groups)
			which[s.Name], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	return groups
}

// many takes several steps, as many as it can at a time. It adds to failed the steps
// whose swap has an error of its own.
func (t *Table) many(ctx context.Context, steps []locktable.Step, groups []group, f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error) error {
	left, late, err := t.together(ctx, steps, groups, f, failed)
	if err == nil && len(left)+len(late) > retryTogetherAbove { // usually they were late: the store's clock has gone on
		left, late, err = t.together(ctx, steps, slices.Concat(left, late), f, failed)
	}
	for size := len(late) / lateParts; err == nil && size > retryTogetherAbove; size /= lateParts {
		var again []group
		for part := range slices.Chunk(late, size) {
			var l, o []group
			if l, o, err = t.together(ctx, steps, part, f, failed); err != nil {
				return err
			}
			left, again = append(left, l...), append(again, o...)
		}
		late = again
	}
	left = append(left, late...)
	for before := 2 * len(groups); err == nil && len(left) > retryTogetherAbove && 2*len(left) <= before; left = append(left, late...) {
		before = len(left) // swaps on names that other clients change fail again
		left, late, err = t.together(ctx, steps, left, f, failed)
	}
	if err != nil {
		return err
	}
	for _, g := range left {
		for k, i := range g {
			refused, err := t.step(ctx, steps[i], func(e *locktable.Entry, now locktable.Instant) { f(i, e, now) })
			if err != nil {
				return err
			}
			if refused != nil {
				for _, i := range g[k:] {
					failed[i] = refused
				}
				break
			}
		}
	}
	return nil
}

// together takes the steps of several names in one request. left has the groups whose
// swap failed, or that must be taken alone. late has those that missed their window. It
// adds to failed the steps whose swap has an error of its own.
func (t *Table) together(ctx context.Context, steps []locktable.Step, groups []group, f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error) (left, late []group, err error) {
	n, names := 0, make([]string, len(groups))
	for k, g := range groups {
		n, names[k] = n+len(g), steps[g[0]].Name
	}
	seen, err := t.lookAll(ctx, names, false)
	if err != nil {
		return nil, nil, err
	}
	wider := time.Duration(max(0, n-stepsPerWindow)) * windowPerStep
	leave, err := t.enterSwap(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	var swaps []Swap
	var taken []group
	for k, g := range groups {
		onTime := slices.ContainsFunc(g, func(i int) bool { return steps[i].OnTime })
		w, blur, err := t.window(ctx, onTime, wider)
		if err != nil {
			return nil, nil, err
		}
		c, err := t.begin(names[k], seen[names[k]], w, blur)
		if err != nil {
			return nil, nil, err
		}
		for _, i := range g {
			c.run(steps[i], t.lingers, func(e *locktable.Entry, now locktable.Instant) { f(i, e, now) })
		}
		if c.entry.Changed {
			swaps, taken = append(swaps, t.swapOf(c)), append(taken, g)
		} else {
			left = append(left, g)
		}
	}
	if len(swaps) == 0 {
		return left, nil, nil
	}
	swapped, err := t.store.Swap(ctx, swaps)
	if err != nil {
		for k := range swaps {
			t.cache.drop(swaps[k].Name) // they may have taken effect all the same
		}
		return left, nil, err
	}
	for k := range swaps {
		switch t.note(swaps[k], swapped[k]); {
		case swapped[k].Done:
		case swapped[k].Err != nil:
			for _, i := range taken[k] {
				failed[i] = swapped[k].Err
			}
		case swapped[k].Late:
			late = append(late, taken[k])
		default:
			left = append(left, taken[k])
		}
	}
	return left, late, nil
}

// lookAll returns the last known values of several names. They may be outdated even if
// it loads them, see [Store]: a step that changes nothing loads its own. With fresh, it
// loads all of them.
func (t *Table) lookAll(ctx context.Context, names []string, fresh bool) (map[string]knownValue, error) {
	seen := make(map[string]knownValue, len(names))
	var unknown []string
	for _, name := range names {
		stored, ok := t.cache.get(name)
		if !ok || fresh {
			unknown = append(unknown, name)
		}
		seen[name] = knownValue{Stored: stored}
	}
	if len(unknown) == 0 {
		return seen, nil
	}
	all, err := t.store.Load(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for k, name := range unknown {
		t.cache.put(name, all[k])
		seen[name] = knownValue{Stored: all[k]}
	}
	return seen, nil
}
