package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/locktable"
)

// UpdateAll implements locktable.Grouped, if the store is an AllSwapper.
func (t *Table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	store, ok := t.store.(AllSwapper)
	if !ok {
		return fmt.Errorf("%w: a swap of several names", errors.ErrUnsupported)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	slices.Sort(names) // all goroutines lock names in the same order
	names = slices.Compact(names)
	for _, name := range names {
		if err := t.names.lock(ctx, name, false); err != nil {
			return err
		}
		defer t.names.unlock(name)
	}
	for failures := 0; ; failures++ {
		done, err := t.tryAll(ctx, store, steps, names, failures > 0, f)
		if err == nil && !done && failures >= retriesWithoutPause {
			err = backoff.Wait(ctx, backoff.Jitter(backoff.Doubled(time.Millisecond, failures-retriesWithoutPause, 32*time.Millisecond)))
		}
		if err != nil {
			for _, name := range names {
				t.cache.drop(name) // the steps may have taken effect in spite of the error
			}
		}
		if done || err != nil {
			return err
		}
	}
}

// tryAll computes all steps, and swaps in the changed values. It reports whether that
// took effect. If f returns true for each step, the swaps prove that the known values
// were current. Otherwise only fresh values prove it.
func (t *Table) tryAll(
	ctx context.Context, store AllSwapper, steps []locktable.Step, names []string, fresh bool,
	f func(i int, e *locktable.Entry, now locktable.Instant) bool,
) (done bool, err error) {
	seen, err := t.lastKnownAll(ctx, names, fresh)
	if err != nil {
		return false, err
	}
	leave, err := t.enterSwap(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	hasEnd := slices.ContainsFunc(steps, func(s locktable.Step) bool { return s.HasEnd })
	all := make(map[string]*computation, len(names))
	for _, name := range names {
		if all[name], err = t.newComputation(ctx, name, seen[name], hasEnd, 0); err != nil {
			return false, err
		}
	}
	continues := true
	for i := 0; i < len(steps) && continues; i++ {
		all[steps[i].Name].run(steps[i], t.delayed, func(e *locktable.Entry, now locktable.Instant) { continues = f(i, e, now) })
	}
	if !continues && !fresh {
		return false, nil
	}
	var swaps []Swap
	for _, name := range names {
		if c := all[name]; continues || c.entry.Changed {
			swaps = append(swaps, t.swapOf(c))
		}
	}
	if len(swaps) == 0 {
		return true, nil
	}
	results, err := store.SwapAll(ctx, swaps)
	if err != nil {
		return false, err
	}
	for k, r := range results {
		if t.applyResult(swaps[k], r); r.Err != nil {
			return false, r.Err
		}
		done = r.Done
	}
	return done, nil
}
