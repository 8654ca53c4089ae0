package optimistic

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl/locktable"
)

// UpdateAll implements locktable.Grouped, if the store is a Transactor. A Swap has one
// name only.
func (t *Table) UpdateAll(ctx context.Context, steps []locktable.Step, f func(i int, e *locktable.Entry, now locktable.Instant) bool) error {
	if t.transactor == nil {
		return fmt.Errorf("%w: a swap of several names", errors.ErrUnsupported)
	}
	for _, s := range steps {
		t.cache.drop(s.Name)
	}
	return t.transactor.Transact(ctx, steps, f)
}
