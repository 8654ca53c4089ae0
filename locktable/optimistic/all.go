package optimistic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/locktable"
)

// UpdateAll implements locktable.Grouped, if the table beside it does: a swap has one
// name.
func (t *Table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	slow, ok := t.slow.(locktable.Grouped)
	if !ok {
		return fmt.Errorf("%w: a swap of several names", errors.ErrUnsupported)
	}
	for _, s := range steps {
		t.cache.drop(s.Name)
	}
	return slow.UpdateAll(ctx, steps, f)
}
