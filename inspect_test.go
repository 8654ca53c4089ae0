package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

func TestInspection(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(&pawl.Options{ID: "a"})
		b, _ := w.client(&pawl.Options{ID: "b"})
		lease := must(t)(a.Mutex("jobs/1").Lock(background))
		must(t)(a.RWMutex("jobs/2").RLock(background))
		must(t)(a.Mutex("other").Lock(background))
		ctx, cancel := context.WithCancel(background)
		done := make(chan struct{})
		go func() { _, _ = b.Mutex("jobs/1").Lock(ctx); close(done) }()
		synctest.Wait()
		var names []string
		for e, err := range a.List(background, "jobs/") {
			noError(t, err)
			names = append(names, e.Name)
		}
		if len(names) != 2 || names[0] != "jobs/1" || names[1] != "jobs/2" {
			t.Errorf("listed %v", names)
		}
		e, err := b.Inspect(background, "jobs/1")
		noError(t, err)
		if len(e.Holders) != 1 || e.Holders[0].Owner.Client != "a" || e.Holders[0].Fence != lease.Fence() ||
			len(e.Waiters) != 1 || e.Waiters[0].Owner.Client != "b" {
			t.Errorf("%+v", e)
		}
		if p := a.Properties(); p.Backend != "memory" || !p.PushesGrants {
			t.Errorf("%+v", p)
		}
		cancel()
		<-done
	})
}

func TestDiagnoseAsksTheBackendsDoctor(t *testing.T) {
	e := &examined{Driver: engine.Full(memlock.New(nil)), findings: []driver.Finding{{Severity: "warning", Subject: "disk"}}}
	c, err := pawl.New(e, nil)
	noError(t, err)
	if found, err := c.Diagnose(background); err != nil || len(found) != 1 || found[0].Subject != "disk" {
		t.Errorf("%v, %v", found, err)
	}
	e.err = errors.New("cut off")
	if _, err := c.Diagnose(background); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	noError(t, c.Close())
	if _, err := c.Diagnose(background); !errors.Is(err, pawl.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestABackendWithoutADoctorSaysSo(t *testing.T) {
	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close()
	if _, err := c.Diagnose(background); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}
