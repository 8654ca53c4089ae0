package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// Options are those of a locker and of a job. The zero value and nil work.
type Options struct {
	// Prefix comes before the job's name, in the name of its lock. Default: "cron:".
	Prefix string

	// MinHold is how long the name of a job stays held after it began, though the job is
	// done: longer than the clocks of the instances differ, and shorter than the
	// schedule's interval. Default: 500 ms; a negative value means not at all. [Job]
	// needs none.
	MinHold time.Duration

	// RetryFor is how long to try again if the backend cannot be asked. It should be less
	// than the schedule's interval. Default 0: not at all, the run is skipped.
	RetryFor time.Duration

	// Location is the time zone of a [Job]'s schedule: that of cron.WithLocation.
	// Default: the machine's, which has to be the same on all instances.
	Location *time.Location

	// Skipped is told of each run that another instance does or has done, with a nil
	// error or one that matches pawl.ErrHeld, and of each that nobody does as far as is
	// known, with any other error. Default: nobody is told.
	Skipped func(job string, err error)

	// Failed is told of the error that a [Job] returned, and of one that matches
	// pawl.ErrLost if others may have run beside it. Default: nobody is told.
	Failed func(job string, err error)

	// Lock are options of the locks, such as pawl.WithTTL.
	Lock []pawl.Option
}

func (o *Options) withDefaults() Options {
	out := Options{}
	if o != nil {
		out = *o
	}
	if out.Prefix == "" {
		out.Prefix = "cron:"
	}
	if out.MinHold == 0 {
		out.MinHold = 500 * time.Millisecond
	}
	out.MinHold = max(out.MinHold, 0)
	if out.Location == nil {
		out.Location = time.Local
	}
	return out
}

func (o *Options) skipped(job string, err error) {
	if o.Skipped != nil {
		o.Skipped(job, err)
	}
}

// again calls try until the backend can be asked, for as long as the options say.
func (o *Options) again(ctx context.Context, try func() error) error {
	for began, pause := time.Now(), 50*time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := try()
		if err == nil || !errors.Is(err, pawl.ErrUnavailable) || time.Since(began)+pause > o.RetryFor {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
