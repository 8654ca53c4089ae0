package optimistic

import (
	"cmp"
	"context"
	"errors"
	"iter"
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

// many takes several steps, as many as it can at a time. It adds to failed the steps
// whose swap has an error of its own.
func (t *Table) many(ctx context.Context, steps []locktable.Step, which []int, f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error) error {
	left, late, err := t.together(ctx, steps, which, f, failed)
	if err == nil && len(left)+len(late) > retryTogetherAbove { // usually they were late: the store's clock has gone on
		again := slices.Concat(left, late)
		slices.Sort(again) // two steps on one name keep their order
		left, late, err = t.together(ctx, steps, again, f, failed)
	}
	for size := len(late) / lateParts; err == nil && size > retryTogetherAbove; size /= lateParts {
		var again []int
		for part := range slices.Chunk(late, size) {
			var l, o []int
			if l, o, err = t.together(ctx, steps, part, f, failed); err != nil {
				return err
			}
			left, again = append(left, l...), append(again, o...)
		}
		late = again
	}
	left = append(left, late...)
	for before := 2 * len(which); t.transactor == nil && err == nil && len(left) > retryTogetherAbove && 2*len(left) <= before; left = append(left, late...) {
		before = len(left) // swaps on names that other clients change fail again
		slices.Sort(left)
		left, late, err = t.together(ctx, steps, left, f, failed)
	}
	slices.SortFunc(left, func(i, j int) int { return cmp.Or(cmp.Compare(steps[i].Name, steps[j].Name), i-j) })
	for same := range chunksOf(left, func(i, j int) bool { return steps[i].Name == steps[j].Name }) {
		if err == nil {
			err = t.ofOneName(ctx, steps, same, f)
		}
		if _, own := errors.AsType[ownError](err); own || errors.Is(err, ErrLocked) {
			for _, i := range same {
				failed[i] = err
			}
			err = nil
		}
	}
	return err
}

// chunksOf cuts a list where two neighbours are not alike.
func chunksOf(list []int, alike func(i, j int) bool) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && alike(list[0], list[n]) {
				n++
			}
			if !yield(list[:n:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// stepsPerTransaction is the number of steps of a name that share one transaction: enough
// to share its cost, few enough that others do not wait for long.
const stepsPerTransaction = 256

// ofOneName takes steps of one name: many in one transaction, if the store has any,
// because each swap would have to wait its turn among other clients.
func (t *Table) ofOneName(ctx context.Context, steps []locktable.Step, which []int, f func(i int, e *locktable.Entry, now locktable.Instant)) error {
	if t.transactor == nil || len(which) == 1 {
		for _, i := range which {
			if err := t.takeOne(ctx, steps[i], func(e *locktable.Entry, now locktable.Instant) { f(i, e, now) }); err != nil {
				return err
			}
		}
		return nil
	}
	name := steps[which[0]].Name
	if err := t.turns.Enter(ctx, name); err != nil {
		return err
	}
	defer t.turns.Leave(name)
	t.cache.drop(name)
	for part := range slices.Chunk(which, stepsPerTransaction) {
		chosen := make([]locktable.Step, len(part))
		for k, i := range part {
			chosen[k] = steps[i]
		}
		err := t.transactor.Transact(ctx, chosen, func(k int, e *locktable.Entry, now locktable.Instant) bool {
			f(part[k], e, now)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// together takes several steps in one request. left has the steps whose swap failed, or
// that must be taken alone. late has those that missed their window. It adds to failed
// the steps whose swap has an error of its own.
func (t *Table) together(ctx context.Context, steps []locktable.Step, which []int, f func(i int, e *locktable.Entry, now locktable.Instant), failed map[int]error) (left, late []int, err error) {
	chosen := make([]locktable.Step, len(which))
	for k, i := range which {
		chosen[k] = steps[i]
	}
	seen, err := t.lookAll(ctx, chosen)
	if err != nil {
		return nil, nil, err
	}
	wider := time.Duration(max(0, len(which)-stepsPerWindow)) * windowPerStep
	leave, err := t.enterSwap(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	var swaps []Swap
	var taken []int
	names := map[string]bool{}
	for _, i := range which {
		s := steps[i]
		if names[s.Name] { // its turn comes after the other step on this name
			left = append(left, i)
			continue
		}
		names[s.Name] = true
		c, err := t.compute(ctx, s, seen[s.Name], wider, func(e *locktable.Entry, now locktable.Instant) { f(i, e, now) })
		switch {
		case errors.Is(err, errTransact):
			left = append(left, i)
		case err != nil:
			return nil, nil, err
		case c.entry.Changed:
			swaps, taken = append(swaps, t.swapOf(s, seen[s.Name], c)), append(taken, i)
		default:
			left = append(left, i)
		}
	}
	if len(swaps) == 0 {
		return left, nil, nil
	}
	swapped, err := t.store.Swap(ctx, swaps)
	if err != nil {
		for k := range swaps {
			t.cache.drop(swaps[k].Name) // the swaps may have taken effect all the same
		}
		return left, nil, err
	}
	for k := range swaps {
		switch t.note(swaps[k], swapped[k]); {
		case swapped[k].Done:
		case swapped[k].Err != nil:
			failed[taken[k]] = swapped[k].Err
		case swapped[k].Late:
			late = append(late, taken[k])
		default:
			left = append(left, taken[k])
		}
	}
	return left, late, nil
}

// lookAll is lookUp for the names of some steps. Values of several names may be outdated,
// see [Store]: a step that changes nothing looks again.
func (t *Table) lookAll(ctx context.Context, steps []locktable.Step) (map[string]knownValue, error) {
	seen := make(map[string]knownValue, len(steps))
	var unknown []string
	for _, s := range steps {
		if _, twice := seen[s.Name]; twice {
			continue
		}
		stored, ok := t.cache.get(s.Name)
		if !ok {
			unknown = append(unknown, s.Name)
		}
		seen[s.Name] = knownValue{Stored: stored}
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
