package doctest

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// An importer is the code under test. It does its job under a lock, one step a minute.
// When the lock is lost, it stops before the next step.
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
