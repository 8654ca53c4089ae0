package memlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/servertest"
)

var open = servertest.OpenDriver[driver.Driver]

// isGranted reports whether a new claim on a name is granted.
func isGranted(t *testing.T, d driver.Driver, name string) bool {
	t.Helper()
	_, err := d.Acquire(t.Context(), driver.Claim{
		Name: name, Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Hour,
	})
	if err != nil && !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("Acquire: %v", err)
	}
	return err == nil
}
