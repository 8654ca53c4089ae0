package drivertest

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/bubble"
)

func TestLateSubtestRunsAgain(t *testing.T) {
	for name, fails := range map[string]func(k *kit){
		"Errorf": func(k *kit) { k.Errorf("%d was late", 1) },
		"Error":  func(k *kit) { k.Error(1, "was late") },
		"Fatalf": func(k *kit) { k.Fatalf("%d was late", 1) },
		"Fatal":  func(k *kit) { k.Fatal(1, "was late") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var units []time.Duration
				inMemory(t).attempt(t, "", nil, func(k *kit) {
					units = append(units, k.unit)
					c := k.mutex(ttl(k.unit))
					k.a.wantGranted(c)
					if len(units) < maxTries {
						time.Sleep(k.unit / 2) // the machine does something else
						fails(k)
					}
					k.advancePast(k.unit)
					k.b.wantGranted(k.mutex())
				})
				if len(units) != maxTries || units[0] != time.Second || units[maxTries-1] != 8*time.Second {
					t.Errorf("the subtest ran with units of %v; want %d tries, from 1s to 8s", units, maxTries)
				}
			})
		})
	}
}

// slowDriver answers each claim after a pause.
type slowDriver struct {
	driver.Driver
	pause time.Duration
}

func (d slowDriver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := backoff.Wait(ctx, d.pause); err != nil {
		return driver.Grant{}, err
	}
	return d.Driver.Acquire(ctx, c)
}

// On a slow machine a basic subtest may run out of time although every answer comes.
func TestBasicSubtestWithSlowAnswersRunsAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, tried := inMemory(t), 0
		s.topic.name, s.Clock = basics, nil
		open := s.Open
		pause := s.Patience / 2
		s.Open = func(t testing.TB) driver.Driver { return slowDriver{open(t), pause} }
		s.attempt(t, "", nil, func(k *kit) {
			tried++
			defer func() { pause = 0 }() // for the next try
			for range 20 {
				c := k.mutex()
				k.a.wantGranted(c)
				k.a.mustRelease(c)
			}
		})
		if tried != 2 {
			t.Errorf("the subtest ran %d times; want 2", tried)
		}
	})
}

func TestPausesOfTheSubtestAreNotLateness(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		k := newKit(t, inMemory(t), time.Second)
		k.advancePast(4 * time.Second)
		k.advance(time.Second)
		if late := k.lateness(); late != 0 {
			t.Errorf("%v late; want 0", late)
		}
		time.Sleep(10 * time.Second)
		if late := k.lateness(); late != 10*time.Second {
			t.Errorf("%v late, want 10s", late)
		}
	})
}

func TestNoRandomCaseBeginsAfterAMinute(t *testing.T) {
	k, n := newKit(t, inMemory(t), time.Second), 0
	k.runCases(func(*rapid.T, func() bool) {
		if n++; n == 3 {
			k.began = k.began.Add(-maxRandomTime)
		}
	})
	if n != 3 {
		t.Errorf("%d cases began; want 3, because the minute ended in the third", n)
	}
}

func TestFailuresNameTheLineOfTheSubtest(t *testing.T) {
	n := &failureLog{}
	func() { n.add("it did not work") }()
	if got := n.take(); len(got) != 1 || got[0] == "it did not work" {
		t.Errorf("%q; want a line number before it", got)
	}
}
