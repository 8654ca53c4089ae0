package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// A host starts `pawl once`, as its cron does.
type host struct {
	client     *pawl.Client
	clockError time.Duration // how far the host's clock is ahead
}

// once runs `pawl once`, whose command takes the duration, and reports whether it ran.
func (h *host) once(t *testing.T, f *onceFlags, duration time.Duration) (ran bool) {
	f.startTime = time.Now()
	j := &job{v: &output{out: io.Discard, err: io.Discard}, name: "x"}
	lease, err := f.claim(t.Context(), h.client, j, f.lockOptions(0))
	switch {
	case errors.Is(err, pawl.ErrValueNotBelow):
		return false
	case err != nil:
		t.Error(err)
		return false
	}
	time.Sleep(duration)
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return true
}

func newHosts(t *testing.T, clockErrors ...time.Duration) (hosts []*host) {
	t.Helper()
	memory := memlock.NewMemory(nil)
	for _, d := range clockErrors {
		c := mustGet(pawl.New(memory.Driver(), nil))(t)
		t.Cleanup(func() { _ = c.Close() })
		hosts = append(hosts, &host{c, d})
	}
	return hosts
}

func newOnceFlags(every time.Duration) *onceFlags {
	return &onceFlags{jobFlags: newJobFlags(), every: every}
}

// Five hosts have the same line in their crontabs. Their clocks differ by seconds, and
// some start late, by less than half of the period. Some ticks are in the middle of an
// hour or of a UTC day, or at a change of summer time.
func TestOnceEveryRunsEachTickOnce(t *testing.T) {
	berlin := mustGet(time.LoadLocation("Europe/Berlin"))(t)
	tickAtNight := func(hour, minute int) func(time.Time) time.Time {
		return func(last time.Time) time.Time {
			y, m, d := last.In(berlin).Date()
			return time.Date(y, m, d+1, hour, minute, 0, 0, berlin)
		}
	}
	tickEvery := func(d, past time.Duration) func(time.Time) time.Time {
		return func(last time.Time) time.Time { return last.Truncate(d).Add(d + past) }
	}
	const day = 24 * time.Hour
	ticks := 1000
	if testing.Short() {
		ticks = 100
	}
	for name, c := range map[string]struct {
		every    time.Duration
		next     func(last time.Time) time.Time
		shortest time.Duration // from one tick to the next, if it is less than every
	}{
		"EachMinute":        {every: time.Minute, next: tickEvery(time.Minute, 0)},
		"InTheMiddle":       {every: time.Minute, next: tickEvery(time.Minute, 30*time.Second)},
		"EachHour":          {every: time.Hour, next: tickEvery(time.Hour, 0)},
		"AtHalfPast":        {every: time.Hour, next: tickEvery(time.Hour, 30*time.Minute)},
		"AtMidnight":        {every: day, next: tickEvery(day, 0)},
		"AtNoon":            {every: day, next: tickEvery(day, 12*time.Hour)},
		"AtAClockChange":    {every: day, next: tickAtNight(2, 30), shortest: day - time.Hour},
		"AfterAClockChange": {every: day, next: tickAtNight(3, 0), shortest: day - time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				const skew = 3 * time.Second
				hosts := newHosts(t, -skew, -time.Second, 0, time.Second, skew)
				maxDelay := c.every/2 - 2*skew - 100*time.Millisecond
				if c.shortest > 0 {
					maxDelay -= c.every - c.shortest
				}
				random := rand.New(rand.NewPCG(1, 2))
				tick := time.Now().Add(time.Minute)
				for range ticks {
					tick = c.next(tick)
					var ran atomic.Int32
					var all sync.WaitGroup
					for _, h := range hosts {
						start := tick.Add(-h.clockError)
						if random.IntN(3) == 0 {
							start = start.Add(time.Duration(random.Int64N(int64(maxDelay))))
						}
						duration := time.Duration(random.Int64N(int64(10 * time.Second))) // short, to save renewals
						all.Go(func() {
							time.Sleep(time.Until(start))
							if h.once(t, newOnceFlags(c.every), duration) {
								ran.Add(1)
							}
						})
					}
					all.Wait()
					if n := ran.Load(); n != 1 {
						t.Fatalf("at the tick of %v it ran %d times, want once", tick, n)
					}
				}
			})
		})
	}
}

// The clock of a host may be wrong by a year: the server's clock decides.
func TestOnceEveryUsesTheServersClock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		now := func() time.Time { return time.Now().AddDate(1, 0, 0) }
		c := mustGet(pawl.New(memlock.NewMemory(&memlock.Options{Now: now}).Driver(), nil))(t)
		defer c.Close()
		f := newOnceFlags(time.Hour)
		f.startTime = time.Now()
		started := now()
		time.Sleep(5 * time.Second) // to open the database
		j := &job{name: "x"}
		if _, err := f.claim(t.Context(), c, j, f.lockOptions(0)); err != nil || j.taskKey != pawl.TimeKey(started) {
			t.Errorf("the key is %s, want %s; %v", j.taskKey, pawl.TimeKey(started), err)
		}
	})
}

// A run that takes longer than the period delays the next ticks, and skips none. Hosts
// that waited for the run do not run its tick again.
func TestOnceEverySkipsNoTickDuringALongRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hosts := newHosts(t, 0, 0)
		var ran atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			for _, h := range hosts {
				all.Go(func() {
					if h.once(t, newOnceFlags(time.Minute), 4*time.Minute) {
						ran.Add(1)
					}
				})
			}
			time.Sleep(time.Minute)
		}
		all.Wait()
		if n := ran.Load(); n != 3 {
			t.Errorf("three ticks ran %d times", n)
		}
	})
}

func TestOnceRefusesAKeyOfAnotherForm(t *testing.T) {
	for _, c := range []struct {
		stored, key string
		sameForm    bool
	}{
		{"2026-01-02", "2026-01-03", true},
		{"2026-01-03", "2026-01-02", true},
		{"k1", "k2", true},
		{"01J8ZQ4Y9V", "01J8ZQABCD", true},
		{"k1", "2026-01-02", false},
		{"k1", pawl.TimeKey(time.Now()), false},
		{"2026-01-02", "2026-01-02T03:04", false},
		{"2026-01-02T03:04", "2026-01-02", false},
		{"k1", "27", false},
		{"9", "10", false},
		{"v1.9.0", "v1.10.0", false},
		{"2026-01-02", "2026/01/02", false},
		{"", "k1", false},
	} {
		bubble.Test(t, func(t *testing.T) {
			h := newHosts(t, 0)[0]
			lease := mustGet(h.client.Mutex("x", pawl.WithValue([]byte(c.stored))).Lock(t.Context()))(t)
			noError(t, lease.Release(t.Context()))
			f := newOnceFlags(0)
			f.key = c.key
			_, err := f.claim(t.Context(), h.client, &job{name: "x"}, f.lockOptions(0))
			if other := new(otherFormError); errors.As(err, &other) == c.sameForm {
				t.Errorf("after %q, the key %q returns %v", c.stored, c.key, err)
			}
		})
	}
}

// In a crontab, a % that is not escaped ends the line.
func TestNoExampleBreaksInACrontab(t *testing.T) {
	for line := range strings.Lines(newOnce(&output{}, &location{}).Example) {
		if comment := strings.HasPrefix(strings.TrimSpace(line), "#"); !comment && strings.Contains(strings.ReplaceAll(line, `\%`, ""), "%") {
			t.Errorf("a %% is not escaped in %s", line)
		}
	}
}
