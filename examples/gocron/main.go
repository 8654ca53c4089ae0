// Gocron runs a job each second in two schedulers, as on two machines. Only one of them
// runs the job each time.
//
//	go run ./examples/gocron
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/cronlock/gocronlock"
	_ "github.com/pawl-go/pawl/memlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, instance := range []string{"one", "two"} {
		locks, err := pawl.Open(ctx, "mem:cron", nil) // for machines: redis://, postgres://, ...
		check(err)
		defer locks.Close()
		options := &cronlock.Options{Skipped: func(job string, err error) {
			if !errors.Is(err, pawl.ErrHeld) {
				log.Printf("%s is not run: %v", job, err)
			}
		}}
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(locks, options)))
		check(err)
		defer s.Shutdown() //nolint:errcheck // the program ends
		_, err = s.NewJob(
			gocron.CronJob("* * * * * *", true), // at full seconds of the clock; a DurationJob counts from its start
			gocron.NewTask(func() { fmt.Println(time.Now().Format(time.TimeOnly), "on instance", instance) }),
			gocron.WithName("report"), // the same name on all machines; the lock is "cron:report"
		)
		check(err)
		s.Start()
	}
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
