// Package cronlock makes the jobs of a schedule run on one instance only, with the
// schedulers that Go programs use. It imports none of them. For an ordinary crontab there
// is a command: pawl run --skip NAME -- COMMAND.
//
// # gocron v2
//
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locks, nil)))
//
// Package gocronlock is a separate package, because it imports gocron. The lock of a job
// is named "cron:" and the job's name ([Options.Prefix]), so name the job with
// gocron.WithName, the same on all instances. Alternatively, all jobs run on the instance
// that leads:
//
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(cronlock.NewElector(ctx, locks.Election("scheduler"), nil)))
//
// # robfig/cron v3
//
//	c := cron.New()
//	schedule, err := cron.ParseStandard("0 3 * * *")
//	c.Schedule(schedule, cronlock.NewJob(locks, "report:nightly", schedule, nil, report))
//
// # What if the clocks of the instances differ, or one is late?
//
// A [Job] knows its schedule, and so its current tick: each tick runs once, by
// [pawl.Once]. Clocks have to be right to within the interval of the schedule, because an
// instance whose clock is ahead runs a tick early. gocron passes only the job's name to a
// locker. So [Options.MinHold] keeps the name held until late instances have tried, too.
// And a gocron.DurationJob counts from the start of its instance, so the instances would
// have to start together. Use a gocron.CronJob.
//
// # What if the backend is down?
//
// Then no instance runs the job. With [Options.RetryFor] the instances retry within the
// tick, and one of them runs it late. [Options.Skipped] is called for each missed run; by
// default, the run is logged. The client's Observer counts it: package otellock reports
// it in pawl.wait.duration, with the outcome "unavailable", and each failed request in
// pawl.request.failures. [Elector.Err] returns why an instance does not lead.
package cronlock
