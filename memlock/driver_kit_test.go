package memlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func open(t *testing.T, url string) driver.Driver {
	t.Helper()
	d, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatalf("Open(%q): %v", url, err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

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
