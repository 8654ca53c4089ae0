package cronlock_test

import (
	"context"
	"log"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/cronlock/gocronlock"
	_ "github.com/pawl-go/pawl/memlock"
)

func ExampleNewLocker() {
	locks, err := pawl.Open(context.Background(), "mem:", nil) // redis://, postgres://, ...
	if err != nil {
		log.Fatal(err)
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locks, &cronlock.Options{
		Skipped: func(job string, err error) { log.Printf("%s: %v", job, err) },
	})))
	if err != nil {
		log.Fatal(err)
	}
	_ = s.Shutdown()
	_ = locks.Close()
}

func ExampleNewElector() {
	ctx, resign := context.WithCancel(context.Background())
	locks, err := pawl.Open(ctx, "mem:", nil)
	if err != nil {
		log.Fatal(err)
	}
	elector := cronlock.NewElector(ctx, locks.Election("scheduler"), nil)
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	_ = s.Shutdown()
	resign()
	<-elector.Done()
	_ = locks.Close()
}

func ExampleNewJob() {
	ctx := context.Background()
	locks, err := pawl.Open(ctx, "mem:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	schedule, err := cron.ParseStandard("0 3 * * *")
	if err != nil {
		log.Fatal(err)
	}
	c := cron.New()
	c.Schedule(schedule, cronlock.NewJob(locks, "report:nightly", schedule, nil, func(context.Context) error { return nil }))
}
