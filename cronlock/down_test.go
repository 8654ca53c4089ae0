package cronlock_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/cronlock/gocronlock"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

// downBackend is a backend that fails until a time.
type downBackend struct {
	engine.Driver

	until time.Time
}

func (d downBackend) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if time.Now().Before(d.until) {
		return driver.Grant{}, errors.New("network down")
	}
	return d.Driver.Acquire(ctx, c)
}

// startEachMinute has a function for each kind of scheduler: it runs job on each minute.
var startEachMinute = map[string]func(t *testing.T, locks *pawl.Client, o *cronlock.Options, job func()) (stop func()){
	"GocronLocker": func(t *testing.T, locks *pawl.Client, o *cronlock.Options, job func()) func() {
		return startGocron(t, gocron.WithDistributedLocker(gocronlock.NewLocker(locks, o)), job)
	},
	"GocronElector": func(t *testing.T, locks *pawl.Client, o *cronlock.Options, job func()) func() {
		ctx, cancel := context.WithCancel(t.Context())
		elector := cronlock.NewElector(ctx, locks.Election("scheduler"), o)
		stop := startGocron(t, gocron.WithDistributedElector(elector), job)
		return func() {
			stop()
			cancel()
			<-elector.Done()
		}
	},
	"Robfig": func(t *testing.T, locks *pawl.Client, o *cronlock.Options, job func()) func() {
		schedule := must(cron.ParseStandard("* * * * *"))(t)
		c := cron.New()
		c.Schedule(schedule, cronlock.NewJob(locks, "report", schedule, o, func(context.Context) error { job(); return nil }))
		c.Start()
		return func() { <-c.Stop().Done() }
	},
}

func startGocron(t *testing.T, o gocron.SchedulerOption, job func()) (stop func()) {
	t.Helper()
	s := must(gocron.NewScheduler(o))(t)
	must(s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(job), gocron.WithName("report")))(t)
	s.Start()
	return func() {
		noError(t, s.Shutdown())
	}
}

// The backend is down at the first minute, and up 20 s later. No instance runs the job at
// that minute: the observer counts the failures, and Skipped gets the run. With RetryFor,
// the run is late instead.
func TestWithoutTheBackendNoInstanceRuns(t *testing.T) {
	for scheduler, start := range startEachMinute {
		for name, retry := range map[string]time.Duration{"Skipped": 0, "TriedAgain": 40 * time.Second} {
			t.Run(scheduler+"/"+name, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					begin := time.Now() // midnight
					var refusals, failures atomic.Int64
					locks, err := pawl.New(downBackend{engine.Full(memlock.New(nil)), begin.Add(80 * time.Second)}, &pawl.Options{Observer: &pawl.Observer{
						NotAcquired: func(e pawl.NotAcquiredEvent) {
							if errors.Is(e.Err, pawl.ErrUnavailable) {
								refusals.Add(1)
							}
						},
						Failed: func(pawl.FailedEvent) { failures.Add(1) },
					}})
					noError(t, err)
					defer locks.Close()
					ran := make(chan time.Duration, 10)
					var skipped []error // only one goroutine at a time uses it
					o := &cronlock.Options{RetryFor: retry, Skipped: func(_ string, err error) { skipped = append(skipped, err) }}
					stop := start(t, locks, o, func() { ran <- time.Since(begin).Round(time.Second) })
					time.Sleep(150 * time.Second)
					stop()
					if refusals.Load() == 0 || failures.Load() == 0 {
						t.Errorf("counted: %d claims that were refused, %d requests that failed", refusals.Load(), failures.Load())
					}
					if retry > 0 {
						if delay := <-ran; len(skipped) != 0 || delay < 80*time.Second || delay > 100*time.Second {
							t.Errorf("the job ran %v after midnight, want 80 s to 100 s; skipped: %v", delay, skipped)
						}
					} else if len(skipped) != 1 || !errors.Is(skipped[0], pawl.ErrUnavailable) {
						t.Errorf("skipped: %v; want one run, with ErrUnavailable", skipped)
					}
					if next := <-ran; next != 2*time.Minute || len(ran) > 0 {
						t.Errorf("the job ran %v after midnight, and %d times more; want once, after 2 m", next, len(ran))
					}
				})
			})
		}
	}
}

// Without options, the log has the run that no instance made, and no ordinary runs.
func TestAMissedRunIsLogged(t *testing.T) {
	for scheduler, start := range startEachMinute {
		t.Run(scheduler, func(t *testing.T) {
			output := captureLog(t)
			bubble.Test(t, func(t *testing.T) {
				d := downBackend{engine.Full(memlock.New(nil)), time.Now().Add(80 * time.Second)}
				locks := must(pawl.New(d, nil))(t)
				defer locks.Close()
				stop := start(t, locks, nil, func() {})
				time.Sleep(110 * time.Second)
				other := must(pawl.New(d.Driver, nil))(t)
				defer other.Close()
				stopOther := start(t, other, nil, func() {})
				time.Sleep(50 * time.Second)
				stop()
				stopOther()
			})
			if text := output.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `level=WARN msg="job is not run"`) || !strings.Contains(text, "network down") {
				t.Errorf("want one line about the missed run; logged:\n%s", text)
			}
		})
	}
}

// captureLog returns the output of the default log during a test.
func captureLog(t *testing.T) *bytes.Buffer {
	before, flags := slog.Default(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
	output := &bytes.Buffer{}
	slog.SetDefault(slog.New(slog.NewTextHandler(output, nil)))
	return output
}
