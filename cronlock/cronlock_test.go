package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/cronlock/gocronlock"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/memlock"
)

var noError = basictest.NoError

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

func TestMain(m *testing.M) { leaktest.Main(m) }

// instances returns clients of one backend in memory, one for each process.
func instances(t *testing.T, n int) []*pawl.Client {
	t.Helper()
	memory := memlock.NewMemory(nil)
	var all []*pawl.Client
	for range n {
		c := must(pawl.New(memory.Driver(), nil))(t)
		t.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}

// runs records the runs of a job.
type runs struct {
	mu     sync.Mutex
	starts []time.Time
	active int // the number of runs that have not ended
	t      *testing.T
}

func (r *runs) run(d time.Duration) {
	r.mu.Lock()
	r.starts = append(r.starts, time.Now())
	if r.active++; r.active > 1 {
		r.t.Error("VIOLATION: two run at once")
	}
	r.mu.Unlock()
	time.Sleep(d)
	r.mu.Lock()
	r.active--
	r.mu.Unlock()
}

func (r *runs) wantCount(from, to int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.starts) < from || len(r.starts) > to {
		r.t.Errorf("%d runs, want %d to %d: %v", len(r.starts), from, to, r.starts)
	}
}

// startSchedulers starts n schedulers of one job. option returns the option of the i-th.
func startSchedulers(t *testing.T, n int, interval, duration time.Duration, option func(i int) gocron.SchedulerOption) (r *runs, stop func()) {
	t.Helper()
	r = &runs{t: t}
	var all []gocron.Scheduler
	for i := range n {
		s := must(gocron.NewScheduler(option(i)))(t)
		must(s.NewJob(gocron.DurationJob(interval), gocron.NewTask(func() { r.run(duration) }), gocron.WithName("report")))(t)
		all = append(all, s)
		time.Sleep(20 * time.Millisecond) // they do not start at exactly the same time
		s.Start()
	}
	return r, func() {
		for _, s := range all {
			noError(t, s.Shutdown())
		}
	}
}

func TestGocronRunsAJobOnOneInstance(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		clients := instances(t, 3)
		var skips sync.Map
		r, stop := startSchedulers(t, 3, 10*time.Second, time.Millisecond, func(i int) gocron.SchedulerOption {
			return gocron.WithDistributedLocker(gocronlock.NewLocker(clients[i], &cronlock.Options{
				Skipped: func(job string, err error) { skips.Store(fmt.Sprint(job, errors.Is(err, pawl.ErrHeld)), true) },
			}))
		})
		time.Sleep(101 * time.Second)
		stop()
		r.wantCount(10, 10)
		if _, ok := skips.Load("reporttrue"); !ok {
			t.Error("Skipped was not called for the skipped runs")
		}
	})
}

func TestGocronRunsOnTheLeader(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		clients := instances(t, 2)
		ctx, resign := context.WithCancel(t.Context())
		defer resign()
		other, end := context.WithCancel(t.Context())
		defer end()
		electors := []*cronlock.Elector{cronlock.NewElector(ctx, clients[0].Election("scheduler"), nil)}
		synctest.Wait()
		electors = append(electors, cronlock.NewElector(other, clients[1].Election("scheduler"), nil))
		r, stop := startSchedulers(t, 2, 10*time.Second, time.Millisecond, func(i int) gocron.SchedulerOption {
			return gocron.WithDistributedElector(electors[i])
		})
		time.Sleep(51 * time.Second)
		if err := electors[0].IsLeader(ctx); err != nil || electors[0].Err() != nil {
			t.Errorf("the first does not lead: %v", err)
		}
		if err := electors[1].IsLeader(ctx); !errors.Is(err, pawl.ErrHeld) || !errors.Is(electors[1].Err(), pawl.ErrHeld) {
			t.Errorf("the second does not return who leads: %v", err)
		}
		resign()
		<-electors[0].Done()
		time.Sleep(50 * time.Second)
		if err := electors[0].IsLeader(t.Context()); !errors.Is(err, context.Canceled) || !errors.Is(electors[0].Err(), context.Canceled) {
			t.Errorf("the first does not return that it has resigned: %v", err)
		}
		if err := electors[1].IsLeader(t.Context()); err != nil {
			t.Errorf("the second does not lead: %v", err)
		}
		stop()
		end()
		<-electors[1].Done()
		r.wantCount(9, 11)
	})
}

// The clocks of ten instances differ by more than a run takes. The last is minutes late.
func TestATickOfRobfigsCronRunsOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		schedule := must(cron.ParseStandard("*/5 * * * *"))(t)
		r := &runs{t: t}
		var all sync.WaitGroup
		for i, c := range instances(t, 10) {
			j := cronlock.NewJob(c, "report", schedule, nil, func(context.Context) error {
				r.run(time.Millisecond)
				return nil
			})
			all.Go(func() {
				for tick, n := schedule.Next(time.Now()), 0; n < 100; tick, n = schedule.Next(tick), n+1 {
					time.Sleep(time.Until(tick.Add(time.Duration(i) * 20 * time.Second)))
					j.Run()
				}
			})
		}
		all.Wait()
		r.wantCount(100, 100)
	})
}

func TestAJobWorksInAChain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		schedule := must(cron.ParseStandard("*/5 * * * *"))(t)
		r := &runs{t: t}
		for _, c := range instances(t, 3) {
			report := cronlock.NewJob(c, "report", schedule, nil, func(context.Context) error { r.run(time.Millisecond); panic("x") })
			cron.NewChain(cron.Recover(cron.DiscardLogger)).Then(report).Run()
		}
		r.wantCount(1, 1)
	})
}

func TestFailedGetsTheErrorOfAJob(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		wantErr := errors.New("no disk")
		var jobErr error
		schedule, _ := cron.ParseStandard("* * * * *")
		o := &cronlock.Options{Failed: func(_ string, err error) { jobErr = err }}
		cronlock.NewJob(instances(t, 1)[0], "report", schedule, o, func(context.Context) error { return wantErr }).Run()
		if !errors.Is(jobErr, wantErr) {
			t.Errorf("Failed got %v, want %v", jobErr, wantErr)
		}
	})
}
