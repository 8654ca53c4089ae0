package sqlitelock

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// drivertest tests the rules of every driver. These tests are for a file only.

func TestLeasesOutliveTheDriver(t *testing.T) {
	path := newPath(t)
	a := open(t, path, nil)
	c := mutex("job")
	g := gets(t, a, c)
	noError(t, a.Close())
	e, err := open(t, path, nil).Inspect(ctx, "job")
	if err != nil || len(e.Holders) != 1 || e.Holders[0].Fence != g.Fence {
		t.Fatalf("after reopening: %+v, %v; want the holder with fence %d", e, err, g.Fence)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, o := range []*Options{{Retention: time.Second}, {Retention: -1}, {Poll: time.Microsecond}, {Poll: time.Minute}, {Poll: -1}} {
		if _, err := OpenFile(ctx, newPath(t), o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v; want ErrInvalid", o, err)
		}
	}
}
