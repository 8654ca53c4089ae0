package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
)

func testProperties(s *suite) {
	s.test("TheShortestTTLIsGranted", func(k *kit) {
		shortest := max(k.a.Properties().MinTTL, driver.MinTTL)
		var err error
		for range 10 {
			// a grant that needs several round trips may expire before it is complete:
			// that is a failure, not a refusal
			c := k.mutex(ttl(shortest))
			if _, err = k.a.Acquire(k.ctx, c); err == nil || !errors.Is(err, driver.ErrUnavailable) {
				break
			}
			k.name += "+"
		}
		if err != nil {
			k.Errorf("Acquire for %v: %v; want it granted", shortest, err)
		}
	})
	for i, open := range s.OtherStores {
		s.test(fmt.Sprintf("Place%dOfTheSameServerIsNotThisOne", i+1), func(k *kit) {
			k.a.wantGranted(k.mutex())
			other := k.openAs(open)
			if here, there := k.a.Properties().Location, other.Properties().Location; here == there || there == "" {
				k.Errorf("Location is %q here, and %q there", here, there)
			}
			other.wantGranted(k.mutex())
		})
	}
	if s.canDiagnose {
		testDoctor(s)
	}
	s.test("AWrapperKeepsWhatItCanDo", func(k *kit) {
		around := wrapper{k.a.Driver}
		for what, same := range map[string]bool{
			"Signaler": keepsAbility[driver.Signaler](around), "Watcher": keepsAbility[driver.Watcher](around), "Lister": keepsAbility[driver.Lister](around),
			"LeaseBreaker": keepsAbility[driver.LeaseBreaker](around), "Diagnoser": keepsAbility[driver.Diagnoser](around),
			"FenceRaiser": keepsAbility[driver.FenceRaiser](around), "AllAcquirer": keepsAbility[driver.AllAcquirer](around),
		} {
			if !same {
				k.Errorf("a wrapper of %T has another %s, or none", k.a.Driver, what)
			}
		}
		if !k.a.Properties().PushesGrants {
			return
		}
		wrapped := k.addClient(around)
		signals := wrapped.listen()
		holder, waiter := k.mutex(), k.mutex(queue(long))
		k.b.wantGranted(holder)
		wrapped.wantPlace(waiter, 1)
		k.b.mustRelease(holder)
		signals.wantSignal(driver.SignalGranted, waiter)
		wrapped.mustRelease(waiter)
	})
	s.test("PushNeedsASignaler", func(k *kit) {
		if _, ok := driver.As[driver.Signaler](k.a.Driver); k.a.Properties().PushesGrants && !ok {
			k.Errorf("PushesGrants is true, but %T has no Listen", k.a.Driver)
		}
	})
}

// wrapper is a driver around another, as for traces or metrics. It keeps the abilities.
type wrapper struct{ driver.Driver }

func (t wrapper) Unwrap() driver.Driver { return t.Driver }

// keepsAbility reports whether a wrapper has the same ability as the driver in it.
func keepsAbility[Ability any](around wrapper) bool {
	_, could := around.Driver.(Ability)
	_, can := driver.As[Ability](around)
	return could == can
}

func testDoctor(s *suite) {
	s.test("ADoctorsFindingsSayWhatIsWrongAndWhatToDo", func(k *kit) {
		doctor := k.a.Driver.(driver.Diagnoser)
		findings, err := doctor.Diagnose(k.ctx)
		if err != nil {
			k.Fatalf("Diagnose: %v", err)
		}
		// The most serious first.
		severities := []driver.Severity{driver.SeverityError, driver.SeverityWarning, driver.SeverityInfo}
		rank := 0
		for _, f := range findings {
			at := slices.Index(severities, f.Severity)
			if at < rank || f.Subject == "" || f.Detail == "" {
				k.Errorf("finding %+v after one of severity %q; want all fields, and the most serious first", f, severities[rank])
			}
			if f.Advice == "" && !(f.IsFact() && strings.HasSuffix(f.Subject, "server")) {
				k.Errorf("finding %+v has no advice; want advice, or an info about the server", f)
			}
			rank = max(rank, at)
		}
		k.mustClose(k.a)
		if _, err := doctor.Diagnose(k.ctx); !errors.Is(err, driver.ErrClosed) {
			k.Errorf("Diagnose after Close: %v; want ErrClosed", err)
		}
	})
}
