// Package cronlock has the jobs of a schedule run on one instance only, with the
// schedulers that Go programs use. It imports none of them. An ordinary crontab has the
// command: pawl run --skip NAME -- COMMAND.
//
// # gocron v2
//
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locks, nil)))
//
// Package gocronlock is below this one, for it imports gocron. Each job is locked under
// "cron:" and its name ([Options.Prefix]), so give it one with gocron.WithName, the same
// on all instances. Or all jobs run on the one instance that leads:
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
// A [Job] knows the schedule, so it knows which tick it is at: each tick is done once, by
// [pawl.Once]. Clocks have to be right to within the interval of the schedule, for one
// that is ahead does a tick early. gocron tells a locker no more than the job's name, so
// there [Options.MinHold] keeps the name held until the instance that is late has come
// too; and a gocron.DurationJob counts from the start of its instance, so the instances
// have to start together. Use a gocron.CronJob.
//
// # What if the backend is down?
//
// Then nobody runs. By [Options.RetryFor] an instance tries again within the tick, and
// one of them runs it late. Each run that nobody does is told to [Options.Skipped], which
// writes it to the log if it is not set. It is counted by the client's Observer: package
// otellock has it in pawl.wait.duration, with the outcome "unavailable", and each request
// that failed in pawl.request.failures. [Elector.Err] says why an instance does not lead.
package cronlock
