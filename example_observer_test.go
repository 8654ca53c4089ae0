package pawl_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/pawl-go/pawl"
)

// A log of what happens to the locks of a client. A lease logs as its name, its fence and
// what is left of it; its token never shows.
func ExampleObserver_slog() {
	options := &slog.HandlerOptions{ReplaceAttr: withoutWhatChanges}
	logger := slog.New(slog.NewTextHandler(os.Stdout, options))
	observer := &pawl.Observer{
		Queued: func(e pawl.QueuedEvent) {
			logger.InfoContext(e.Ctx, "waiting", "name", e.Name, "place", e.Held.Position, "why", e.Held)
		},
		Refused: func(e pawl.RefusedEvent) {
			logger.InfoContext(e.Ctx, "refused", "name", e.Name, "try", e.Try, "err", e.Err)
		},
		Acquired: func(e pawl.AcquiredEvent) {
			logger.InfoContext(e.Ctx, "acquired", "lease", e.Lease, "waited", e.Waited)
		},
		Released: func(e pawl.ReleasedEvent) {
			logger.InfoContext(e.Ctx, "released", "lease", e.Lease, "held", e.Held)
		},
		Lost: func(e pawl.LostEvent) {
			logger.ErrorContext(e.Ctx, "lost", "lease", e.Lease, "held", e.Held, "err", e.Err)
		},
		Failed: func(e pawl.FailedEvent) {
			logger.WarnContext(e.Ctx, "backend failed", "op", e.Op, "claims", e.Count, "err", e.Err)
		},
	}

	ctx := context.Background()
	locks, _ := pawl.Open(ctx, "mem:", &pawl.Options{Observer: observer})
	defer locks.Close()
	_ = locks.Mutex("nightly").Do(ctx, func(context.Context) error { return nil })
	// Output:
	// level=INFO msg=acquired lease.name=nightly
	// level=INFO msg=released lease.name=nightly lease.over="pawl: lock released"
}

// withoutWhatChanges leaves out what is different in each run of the example.
func withoutWhatChanges(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "fence", "left", "waited", "held":
		return slog.Attr{}
	}
	return a
}
