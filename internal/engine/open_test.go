package engine_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/locktable"
)

var errRefused = errors.New("refused")

// With an error DriverOrError must return a nil interface. An interface with a nil
// pointer is not nil.
func TestDriverOrErrorReturnsANilInterfaceWithAnError(t *testing.T) {
	if d, err := engine.DriverOrError((*locktable.Driver)(nil), errRefused); d != nil || !errors.Is(err, errRefused) {
		t.Errorf("DriverOrError: %v, %v; want nil and the error", d, err)
	}
}

func TestOpenRefusesAnInvalidURL(t *testing.T) {
	d, err := engine.Open(t.Context(), "%", func(context.Context, *url.URL) (driver.Driver, error) { return nil, errRefused })
	if _, ok := errors.AsType[*driver.InvalidError](err); !ok || d != nil {
		t.Errorf("Open: %v, %v; want a *driver.InvalidError", d, err)
	}
}

// If dial outlives its ctx, Dial returns, and discards the client later.
func TestDialDiscardsALateClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began, discarded := time.Now(), 0
		c, err := engine.Dial(ctx, func() (int, error) { time.Sleep(time.Minute); return 7, nil }, func(c int) { discarded = c })
		if took := time.Since(began); c != 0 || !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("Dial: %d, %v after %v; want the end of ctx after 1s", c, err, took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if discarded != 7 {
			t.Errorf("discarded %d; want 7", discarded)
		}
		c, err = engine.Dial(t.Context(), func() (int, error) { return 8, nil }, func(int) { t.Error("a client in use was discarded") })
		if c != 8 || err != nil {
			t.Errorf("Dial: %d, %v", c, err)
		}
	})
}
