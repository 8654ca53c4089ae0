package pawl

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
)

// LogObserver returns an observer that writes events to a log. A nil logger is
// slog.Default. It logs usual events at level Debug: claims that wait or were cancelled,
// leases that were acquired and released. It logs at Info a try of a lock that others
// hold, and a claim that the name's value refused; at Warn requests that failed, and
// claims that gave up; at Error a lost lease. It never writes tokens.
func LogObserver(log *slog.Logger) *Observer {
	log = cmp.Or(log, slog.Default())
	return &Observer{
		Queued: func(e QueuedEvent) {
			log.LogAttrs(e.Ctx, slog.LevelDebug, "lock queued", slog.String("name", e.Name), slog.Int("position", e.Held.Position), slog.Any("held", e.Held))
		},
		NotAcquired: func(e NotAcquiredEvent) {
			level := slog.LevelWarn
			switch {
			case e.Try && errors.Is(e.Err, ErrHeld), errors.Is(e.Err, ErrValueNotBelow):
				level = slog.LevelInfo
			case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, ErrClosed):
				level = slog.LevelDebug
			}
			log.LogAttrs(e.Ctx, level, "lock refused", slog.String("name", e.Name), slog.Duration("waited", e.Waited), slog.Any("error", e.Err))
		},
		Acquired: func(e AcquiredEvent) {
			log.LogAttrs(e.Ctx, slog.LevelDebug, "lock acquired", slog.String("name", e.Name), slog.Uint64("fence", e.Lease.Fence()),
				slog.Duration("waited", e.Waited))
		},
		Released: func(e ReleasedEvent) {
			level := slog.LevelDebug
			if e.Err != nil && !errors.Is(e.Err, ErrDetached) {
				level = slog.LevelWarn
			}
			attrs := []slog.Attr{slog.String("name", e.Name), slog.Uint64("fence", e.Lease.Fence()), slog.Duration("held", e.Held)}
			if e.Err != nil {
				attrs = append(attrs, slog.Any("error", e.Err))
			}
			log.LogAttrs(e.Ctx, level, "lock released", attrs...)
		},
		Lost: func(e LostEvent) {
			log.LogAttrs(e.Ctx, slog.LevelError, "lock lost", slog.String("name", e.Name), slog.Uint64("fence", e.Lease.Fence()),
				slog.Duration("held", e.Held), slog.Any("error", e.Err))
		},
		Failed: func(e FailedEvent) {
			log.LogAttrs(e.Ctx, slog.LevelWarn, "lock backend failed", slog.String("op", string(e.Op)), slog.String("name", e.Name),
				slog.Int("claims", e.Count), slog.Any("error", e.Err))
		},
	}
}
