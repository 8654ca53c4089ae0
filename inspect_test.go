package pawl_test

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/memlock"
)

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
