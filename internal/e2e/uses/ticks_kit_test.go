package uses_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

const (
	interval = 10 * time.Second // of the schedule
	mostSkew = 2 * time.Second  // how far a clock may be ahead or behind
	haste    = 200              // how much faster the time of the schedule runs
)

// A death says when the test kills the first instance that begins a tick.
type death int

const (
	none      death = iota
	atWork          // its function has begun
	afterWork       // its function has ended, and the client has not recorded that
	beforeIt        // it was granted the lock, and does not know yet
)

// A drill is a schedule that the instances run. Its time advances as soon as they have
// finished a tick.
type drill struct {
	t           testing.TB
	b           *backend
	name        string
	instances   int
	atLeastOnce bool
	deaths      []death // of each tick
	dying       sync.WaitGroup

	mu    sync.Mutex
	ticks []tick
}

// A tick is the result of one tick of the schedule.
type tick struct {
	grants, began, done int
	told                []error // errors of instances that were not killed
}

func newDrill(t testing.TB, b *backend, instances, ticks int, atLeastOnce bool) *drill {
	d := &drill{
		t: t, b: b, name: fresh(t), instances: instances, atLeastOnce: atLeastOnce,
		deaths: make([]death, ticks), ticks: make([]tick, ticks),
	}
	every := 20
	for at := rand.IntN(every); at < ticks; at += 1 + every/2 + rand.IntN(every) {
		d.deaths[at] = atWork
		if atLeastOnce { // at most once, an instance that dies before its function spends the tick
			d.deaths[at] = atWork + death(rand.IntN(3))
		}
	}
	return d
}

// run has all instances go through all ticks.
func (d *drill) run() {
	var all []*instance
	for range d.instances {
		skew := time.Duration(rand.Int64N(int64(2*mostSkew))) - mostSkew
		i := &instance{d: d, skew: skew}
		i.start()
		all = append(all, i)
	}
	begin := time.Now().Truncate(interval)
	for n := range d.ticks {
		var round sync.WaitGroup
		for _, i := range all {
			round.Go(func() { i.comes(n, begin.Add(time.Duration(n)*interval)) })
		}
		round.Wait()
	}
	d.dying.Wait()
}

func (d *drill) at(n int, f func(k *tick)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.ticks[n])
}

// An instance is one process, and its successor after a kill. Its clock is wrong.
type instance struct {
	d      *drill
	skew   time.Duration
	client *pawl.Client
	once   *pawl.Once
	body   *mortal
	alive  context.Context
	kill   context.CancelFunc
	missed string       // a tick for which it was late
	at     atomic.Int64 // its current tick
}

func (i *instance) start() {
	d := i.d
	i.alive, i.kill = context.WithCancel(background)
	i.body = &mortal{full: d.b.open(d.t).(full), granted: i.granted}
	i.client = clientOf(d.t, i.body, brief)
	var o pawl.OnceOption
	if d.atLeastOnce {
		o = pawl.WithAtLeastOnce()
	}
	i.once = i.client.Once(d.name, o)
}

// granted is called when the instance has got the lock, but does not know it yet.
func (i *instance) granted() (dies bool) {
	n := int(i.at.Load())
	i.d.at(n, func(k *tick) {
		k.grants++
		dies = k.grants == 1 && i.d.deaths[n] == beforeIt
	})
	if dies {
		i.kill()
	}
	return dies
}

func (i *instance) dies() {
	i.body.die()
	i.kill()
}

// comes lets the instance run a tick when it is time by its own clock. One in fifty is
// late, and runs it when another tick is done.
func (i *instance) comes(n int, at time.Time) {
	late := mostSkew - i.skew // after the first that may run it
	time.Sleep(late / haste)
	now := at.Add(-i.skew + time.Duration(rand.Int64N(int64(time.Second))))
	key := pawl.TimeKey(now.Add(i.skew).Truncate(interval)) // as its scheduler does
	missed := i.missed
	if i.missed = ""; rand.IntN(50) == 0 && n+1 < len(i.d.ticks) && i.d.deaths[n] == none {
		i.missed = key
		return
	}
	i.do(n, key)
	if missed != "" && i.alive.Err() == nil {
		ran, err := i.once.Do(i.alive, missed, nothing)
		if ran || err != nil && i.alive.Err() == nil && !errors.Is(err, pawl.ErrUnavailable) {
			i.d.t.Errorf("the tick before %d, when that is done: %v, %v", n, ran, err)
		}
	}
	if i.alive.Err() != nil {
		dead, over := i.client, i.alive
		i.d.dying.Go(func() { _ = dead.Shutdown(over) })
		i.start()
	}
}

func (i *instance) do(n int, key string) {
	d := i.d
	i.at.Store(int64(n))
	_, err := i.once.Do(i.alive, key, func(context.Context) error {
		var how death
		d.at(n, func(k *tick) {
			if k.began++; k.began == 1 {
				how = d.deaths[n]
			}
		})
		if how == atWork {
			i.dies()
			return errDead
		}
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))) / haste)
		d.at(n, func(k *tick) { k.done++ })
		if how == afterWork {
			i.dies()
		}
		return nil
	})
	if err != nil && i.alive.Err() == nil {
		d.at(n, func(k *tick) { k.told = append(k.told, err) })
	}
}
