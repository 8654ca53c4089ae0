package cronlock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// Schedule says when a job is to run: Next is the first time after t, or zero if there is
// none. A cron.Schedule of robfig/cron is one.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Job runs on one instance at each tick of its schedule. It is a cron.Job of robfig/cron,
// and can be run by any other scheduler that calls Run at the ticks.
type Job struct {
	name     string
	schedule Schedule
	o        Options
	once     *pawl.Once
	f        func(ctx context.Context) error
}

// NewJob returns a job. schedule has to be the one that it is added with. name is that of
// the job, the same on all instances. o may be nil.
//
// f's context ends when the lock is lost. Options.Failed is told of f's error, for cron
// has nowhere to put it.
//
// An "@every" schedule begins when its instance does, so its ticks are no ones that the
// instances share: each run is a tick of its own. Write "*/5 * * * *" instead.
func NewJob(locks *pawl.Client, name string, schedule Schedule, o *Options, f func(ctx context.Context) error) *Job {
	j := &Job{name: name, schedule: schedule, o: o.withDefaults(), f: f}
	options := make([]pawl.OnceOption, len(j.o.Lock))
	for i, o := range j.o.Lock {
		options[i] = o
	}
	j.once = locks.Once(j.o.Prefix+name, options...)
	return j
}

// Run runs f, unless another instance does or has done this tick.
func (j *Job) Run() {
	ctx := context.Background()
	key := pawl.TimeKey(last(j.schedule, time.Now().In(j.o.Location)))
	ran := false
	var failed, unanswered error
	err := j.o.again(ctx, nil, func() (err error) {
		if ran, err = j.once.TryDo(ctx, key, j.f); ran {
			failed, err = err, nil // it is not to run again, whatever that is
		}
		if err != nil {
			unanswered = err
		}
		return err
	})
	switch {
	case !ran && err == nil && unanswered != nil: // it may be done by that try, which was taken back
		j.o.Skipped(j.name, unanswered)
	case !ran:
		j.o.Skipped(j.name, err)
	case failed != nil:
		j.o.Failed(j.name, failed)
	}
}

// last is the last tick of a schedule, up to now.
func last(s Schedule, now time.Time) time.Time {
	tick := now
	for back := time.Second; back < 10*366*24*time.Hour; back *= 4 {
		if tick = s.Next(now.Add(-back)); !tick.After(now) && !tick.IsZero() {
			break
		}
	}
	for next := tick; !next.After(now) && !next.IsZero(); next = s.Next(tick) {
		tick = next
	}
	return tick
}
