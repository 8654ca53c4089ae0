package cronlock

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// Schedule determines when a job runs: Next returns the first time after t, or zero if
// there is no next time. A cron.Schedule of robfig/cron is a Schedule.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Job runs on one instance at each tick of its schedule. It is a cron.Job of robfig/cron,
// and works with any other scheduler that calls Run at the ticks.
type Job struct {
	name     string
	schedule Schedule
	o        Options
	once     *pawl.Once
	f        func(ctx context.Context) error
}

// NewJob returns a job. Add it to the scheduler with the same schedule. name is the name
// of the job, the same on all instances. o may be nil.
//
// f runs at most once a tick: if its process crashes midway, that tick is lost. To run a
// crashed tick on another instance, call pawl.Once with pawl.WithAtLeastOnce in a job of
// your own: it runs f at least once. Options.Lock does not take that option.
//
// f's context ends when the lock is lost, or the client is closed. [Job.Run] calls
// Options.Failed with f's error, because cron ignores errors.
//
// An "@every" schedule begins when its instance starts, so the instances do not share its
// ticks: each run is a tick of its own. Write "*/5 * * * *" instead.
func NewJob(locks *pawl.Client, name string, schedule Schedule, o *Options, f func(ctx context.Context) error) *Job {
	j := &Job{name: name, schedule: schedule, o: o.withDefaults(), f: f}
	options := make([]pawl.OnceOption, len(j.o.Lock))
	for i, o := range j.o.Lock {
		options[i] = o
	}
	j.once = locks.Once(j.o.Prefix+name, options...)
	return j
}

// Run runs f, unless another instance runs or has run this tick. It has no ctx, like a
// cron.Job. To end f when the process ends, close the client.
func (j *Job) Run() {
	ctx := context.Background()
	if j.schedule == nil {
		j.o.Skipped(j.name, &pawl.InvalidError{Argument: "schedule", Problem: "is nil", Allowed: "one with a Next"})
		return
	}
	key := pawl.TimeKey(lastTick(j.schedule, time.Now().In(j.o.Location)))
	ran := false
	var jobErr, unavailableErr error
	err := j.o.retry(ctx, nil, func() (err error) {
		if ran, err = j.once.TryDo(ctx, key, j.f); ran {
			jobErr, err = err, nil // f must not run again, whatever the error
		}
		if err != nil {
			unavailableErr = err
		}
		return err
	})
	switch {
	case !ran && err == nil && unavailableErr != nil: // the try without an answer may have stored the tick
		j.o.Skipped(j.name, unavailableErr)
	case !ran:
		j.o.Skipped(j.name, err)
	case jobErr != nil:
		j.o.Failed(j.name, jobErr)
	}
}

// lastTick returns the last tick of a schedule, up to now.
func lastTick(s Schedule, now time.Time) time.Time {
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
