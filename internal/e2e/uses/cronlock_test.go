package uses_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cronlock"
	"github.com/pawl-go/pawl/cronlock/gocronlock"
)

// fixed is a schedule of robfig/cron with two ticks: one in the past, and one next year.
type fixed struct{ tick time.Time }

func (f fixed) Next(t time.Time) time.Time {
	if t.Before(f.tick) {
		return f.tick
	}
	return f.tick.AddDate(1, 0, 0)
}

var _ cron.Schedule = fixed{}

func TestATickOfRobfigsCronIsDoneByOneInstance(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		var ran, skipped atomic.Int32
		o := &cronlock.Options{
			Skipped: func(_ string, err error) {
				if skipped.Add(1); err != nil && !errors.Is(err, pawl.ErrHeld) {
					t.Error(err)
				}
			},
			Failed: func(_ string, err error) { t.Error(err) },
		}
		name, tick := fresh(t), time.Now().Add(-time.Minute)
		var instances []*pawl.Client
		for range 5 {
			instances = append(instances, b.client(t, nil))
		}
		for n := range int32(3) {
			schedule := fixed{tick.Add(time.Duration(n) * time.Second)}
			var all sync.WaitGroup
			for _, c := range instances {
				all.Go(cronlock.NewJob(c, name, schedule, o, func(context.Context) error { ran.Add(1); return nil }).Run)
			}
			all.Wait()
			if ran.Load() != n+1 || skipped.Load() != 4*(n+1) {
				t.Errorf("after tick %d: %d runs, %d were skipped", n+1, ran.Load(), skipped.Load())
			}
		}
	})
}

// Three schedulers of gocron begin one job at the same time. The first keeps the name, so
// a late one still finds it held.
func TestGocronRunsAJobOnOneInstance(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		var ran atomic.Int32
		name, skipped := fresh(t), make(chan error, 10)
		var all []gocron.Scheduler
		for range 3 {
			locker := gocronlock.NewLocker(b.client(t, nil), &cronlock.Options{
				MinHold: time.Hour, Skipped: func(_ string, err error) { skipped <- err },
			})
			s := must(gocron.NewScheduler(gocron.WithDistributedLocker(locker)))(t)
			_ = must(s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() { ran.Add(1) }), gocron.WithName(name)))(t)
			all = append(all, s)
		}
		for _, s := range all {
			s.Start()
		}
		for range 2 {
			isError(t, get(t, skipped, "a run that is skipped"), pawl.ErrHeld)
		}
		eventually(t, "the third runs", func() bool { return ran.Load() > 0 }) // Shutdown would prevent the run
		for _, s := range all {
			noError(t, s.Shutdown())
		}
		if n := ran.Load(); n != 1 {
			t.Errorf("it ran %d times", n)
		}
	})
}

func TestGocronRunsOnTheLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs this: it waits for real time")
	}
	onEach(t, func(t *testing.T, b *backend) {
		name := fresh(t)
		var electors []*cronlock.Elector
		var resign []context.CancelFunc
		watcher := b.client(t, nil)
		for i := range 2 {
			ctx, stop := context.WithCancel(background)
			defer stop()
			electors, resign = append(electors, cronlock.NewElector(ctx, b.client(t, nil).Election(name), nil)), append(resign, stop)
			if i == 0 {
				eventually(t, "the first leads", func() bool { return electors[0].IsLeader(background) == nil })
			}
		}
		waiters(t, watcher, name, 1)
		if electors[0].IsLeader(background) != nil || electors[1].IsLeader(background) == nil {
			t.Error("the first does not lead alone")
		}
		resign[0]()
		get(t, electors[0].Done(), "the end of the first")
		eventually(t, "the second leads", func() bool { return electors[1].IsLeader(background) == nil })
		isError(t, electors[0].IsLeader(background), context.Canceled)
		resign[1]()
		get(t, electors[1].Done(), "the end of the second")
		free(t, watcher, name)
	})
}
