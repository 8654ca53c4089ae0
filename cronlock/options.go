package cronlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pawl-go/pawl"
)

// Options are those of a locker, an elector and a job. The zero value and nil work.
type Options struct {
	// Prefix comes before the job's name, in the name of its lock. Default: "cron:".
	Prefix string

	// MinHold is how long the name of a job stays held after it began, though the job is
	// done: longer than the clocks of the instances differ, and shorter than the
	// schedule's interval. Default: 500 ms; a negative value means not at all. [Job] has
	// no use for it: each of its ticks is done once anyway.
	MinHold time.Duration

	// RetryFor is how long to try again if the backend cannot be asked. It should be less
	// than the schedule's interval. Default 0: not at all, the run is skipped.
	RetryFor time.Duration

	// Location is the time zone of a [Job]'s schedule: that of cron.WithLocation.
	// Default: the machine's, which has to be the same on all instances.
	Location *time.Location

	// Skipped is told of each run that another instance does or has done, with a nil
	// error or one that matches pawl.ErrHeld, and of each that nobody does as far as is
	// known, with any other error. Default: the log, slog.Default; at the level Debug
	// what another instance does, and at Warn what nobody does.
	Skipped func(job string, err error)

	// Failed is told of the error that a [Job] returned, and of one that matches
	// pawl.ErrLost if others may have run beside it. Default: the log, at the level
	// Error.
	Failed func(job string, err error)

	// Lock are options of the locks, such as pawl.WithTTL. With one that is refused, such
	// as pawl.WithValue for a [Job], no job runs, and Skipped is told.
	Lock []pawl.LockOption
}

func (o *Options) withDefaults() Options {
	out := *cmp.Or(o, &Options{})
	out.Prefix = cmp.Or(out.Prefix, "cron:")
	out.MinHold = cmp.Or(out.MinHold, 500*time.Millisecond)
	out.MinHold = max(out.MinHold, 0)
	out.Location = cmp.Or(out.Location, time.Local)
	if out.Skipped == nil {
		out.Skipped = logSkipped
	}
	if out.Failed == nil {
		out.Failed = func(job string, err error) { slog.Error("job failed", "job", job, "error", err) }
	}
	return out
}

func logSkipped(job string, err error) {
	switch {
	case err == nil || errors.Is(err, pawl.ErrHeld):
		slog.Debug("job is run elsewhere", "job", job, "error", err)
	case errors.Is(err, pawl.ErrClosed), errors.Is(err, context.Canceled): // on shutdown
		slog.Debug("job is not run", "job", job, "error", err)
	default:
		slog.Warn("job is not run", "job", job, "error", err)
	}
}

// again calls try until the backend can be asked, for as long as the options say, and
// until ended is closed.
func (o *Options) again(ctx context.Context, ended <-chan struct{}, try func() error) error {
	for began, pause := time.Now(), 50*time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := try()
		if err == nil || !errors.Is(err, pawl.ErrUnavailable) || time.Since(began)+pause > o.RetryFor {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return try()
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
