package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/memlock"
)

func TestDiagnoseAsksTheBackendsDoctor(t *testing.T) {
	e := &examined{Driver: memlock.New(nil), findings: []driver.Finding{{Severity: "warning", Subject: "disk"}}}
	c, err := pawl.New(e, nil)
	noError(t, err)
	if found, err := c.Diagnose(background); err != nil || len(found) != 1 || found[0].Subject != "disk" {
		t.Errorf("%v, %v", found, err)
	}
	e.err = errors.New("cut off")
	if _, err := c.Diagnose(background); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	noError(t, c.Close(background))
	if _, err := c.Diagnose(background); !errors.Is(err, pawl.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestABackendWithoutADoctorSaysSo(t *testing.T) {
	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close(background)
	if _, err := c.Diagnose(background); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

// Its caller has a fence, and never had a token.
func TestBreakSaysWhichFenceNobodyHas(t *testing.T) {
	c, err := pawl.New(memlock.New(nil), nil)
	noError(t, err)
	defer c.Close(background)
	err = c.Break(background, "x", 17, 0)
	isError(t, err, pawl.ErrNotHeld)
	if got := err.Error(); got != `pawl: no lease of "x" has the fence 17` {
		t.Errorf("it says %s", got)
	}
}

// However deep the errors are that an error holds.
func TestAnErrorSaysPawlOnce(t *testing.T) {
	down := &driver.Error{Backend: "quorum", Op: "renew", Err: &driver.Error{Backend: "redis", Op: "renew", Err: errNet}}
	lost := &pawl.LostError{Name: "x", Fence: 17, Reason: pawl.ReasonUnreachable, Err: down}
	if got := lost.Error(); got != `pawl: lost "x" (fence 17): backend unreachable: quorum: renew: redis: renew: network down` {
		t.Errorf("it says %s", got)
	}
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		defer f.down()()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err := c.Mutex("x").Lock(ctx)
		isError(t, err, context.DeadlineExceeded)
		if got := err.Error(); strings.Count(got, "pawl: ") != 1 || !strings.Contains(got, "network down") {
			t.Errorf("it says %s", got)
		}
	})
}
