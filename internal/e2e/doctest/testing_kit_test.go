package doctest

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// An importer is the code that is tested. It does its job under a lock, a step a minute,
// and stops between two steps when the lock is lost.
type importer struct {
	locks *pawl.Client
	steps int
}

func (i *importer) run(ctx context.Context) error {
	return i.locks.Mutex("import").Do(ctx, func(ctx context.Context) error {
		for range 10 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute):
				i.steps++
			}
		}
		return nil
	})
}
