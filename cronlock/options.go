package cronlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pawl-go/pawl"
)

// Options configure a locker, an elector or a job. The zero value and nil work.
type Options struct {
	// Prefix precedes the job's name in the name of its lock. Default: "cron:".
	Prefix string

	// MinHold is the time for which the name of a job stays held after the job began,
	// even if the job has ended. Set it longer than the difference of the instances'
	// clocks, and shorter than the schedule's interval. Default: 500 ms; a negative value
	// means no time. A [Job] ignores it, because it remembers its ticks.
	MinHold time.Duration

	// RetryFor is the time for which to retry if the backend does not answer. It should
	// be less than the schedule's interval. Default 0: no retry, the run is skipped.
	RetryFor time.Duration

	// Location is the time zone of a [Job]'s schedule, as given to cron.WithLocation.
	// Default: the machine's zone, which has to be the same on all instances.
	Location *time.Location

	// Skipped is called for each skipped run. If another instance runs or has run it, the
	// error is nil or matches pawl.ErrHeld. With any other error, probably no instance
	// runs it. Default: the log, slog.Default, at the level Debug for runs of another
	// instance and after Close, and otherwise Warn.
	Skipped func(job string, err error)

	// Failed gets the error of a [Job]'s function, and an error that matches pawl.ErrLost
	// if another instance may have run it, too. Default: the log, at the level Error.
	Failed func(job string, err error)

	// Lock has options of the locks, such as pawl.WithTTL. With an invalid option, such
	// as pawl.WithValue for a [Job], no job runs, and Skipped is called.
	Lock []pawl.LockOption
}

func (o *Options) withDefaults() Options {
	result := *cmp.Or(o, &Options{})
	result.Prefix = cmp.Or(result.Prefix, "cron:")
	result.MinHold = max(0, cmp.Or(result.MinHold, 500*time.Millisecond))
	result.Location = cmp.Or(result.Location, time.Local)
	if result.Skipped == nil {
		result.Skipped = logSkipped
	}
	if result.Failed == nil {
		result.Failed = func(job string, err error) { slog.Error("job failed", "job", job, "error", err) }
	}
	return result
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

// retry repeats try until the backend answers, RetryFor has passed, ctx ends, or ended is
// closed.
func (o *Options) retry(ctx context.Context, ended <-chan struct{}, try func() error) error {
	for began, pause := time.Now(), 50*time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := try()
		if err == nil || !errors.Is(err, pawl.ErrUnavailable) || time.Since(began)+pause > o.RetryFor {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ended:
			return try()
		case <-ctx.Done():
			return err
		}
	}
}
