package cronlock

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/pawl-go/pawl"
)

// Job makes a job of robfig/cron that runs on one instance at each tick of its schedule,
// which has to be the one that it is added with. name is that of the job, the same on all
// instances. o may be nil.
//
// f's context ends when the lock is lost. Options.Failed is told of f's error, for cron
// has nowhere to put it.
//
// An "@every" schedule begins when its instance does, so its ticks are no ones that the
// instances share: each run is a tick of its own. Write "*/5 * * * *" instead.
func Job(locks *pawl.Client, name string, schedule cron.Schedule, o *Options, f func(ctx context.Context) error) cron.Job {
	j := &job{name: name, schedule: schedule, o: o.withDefaults(), f: f}
	options := make([]pawl.OnceOption, len(j.o.Lock))
	for i, o := range j.o.Lock {
		options[i] = o
	}
	j.once = locks.Once(j.o.Prefix+name, options...)
	return j
}

// Wrapper is [Job] for a job that is there already, in a chain with the wrappers of
// robfig/cron. What the job does cannot be told that the lock is lost.
//
//	c.Schedule(schedule, cron.NewChain(cronlock.Wrapper(locks, "report", schedule, nil), cron.Recover(log)).Then(report))
func Wrapper(locks *pawl.Client, name string, schedule cron.Schedule, o *Options) cron.JobWrapper {
	return func(inner cron.Job) cron.Job {
		return Job(locks, name, schedule, o, func(context.Context) error {
			inner.Run()
			return nil
		})
	}
}

type job struct {
	name     string
	schedule cron.Schedule
	o        Options
	once     *pawl.Once
	f        func(ctx context.Context) error
}

// Run implements cron.Job.
func (j *job) Run() {
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
func last(s cron.Schedule, now time.Time) time.Time {
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
