package sqlswap

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// A Tidier deletes names that were unused for the retention time. After about one swap in
// swapsPerTidying, it checks some names in the background. The fence of a name contains
// the time of its last grant, so no index is needed.
type Tidier struct {
	Life    context.Context    // ends when the store closes
	Running *engine.Background // the store's Close waits for it

	// Tidy checks TidyRows names. If it fails, a later call or another client repeats it.
	Tidy func(ctx context.Context)

	busy atomic.Bool // a call of Tidy is under way
}

// TidyRows is the number of names that a Tidy checks.
const TidyRows = 64

const (
	swapsPerTidying = 64
	tidyTimeout     = 5 * time.Second
)

// CountSwap counts a swap, and calls Begin after about one swap in swapsPerTidying.
func (t *Tidier) CountSwap() {
	if rand.N(swapsPerTidying) == 0 {
		t.Begin()
	}
}

// Begin calls Tidy in a goroutine, unless a call is under way.
func (t *Tidier) Begin() {
	if t.Life.Err() != nil || t.busy.Swap(true) {
		return
	}
	t.Running.Go(func() {
		defer t.busy.Store(false)
		ctx, cancel := context.WithTimeout(t.Life, tidyTimeout)
		defer cancel()
		t.Tidy(ctx)
	})
}

// Forgettable returns the rows that a store may delete. A damaged row stays, so that
// steps on it report the damage.
func Forgettable(rows []swap.Named, retention time.Duration) (old []swap.Named) {
	for _, row := range rows {
		if e, err := locktable.Decode(row.Stored.Value); err == nil && e.Forgettable(row.Now, retention) {
			old = append(old, row)
		}
	}
	return old
}
