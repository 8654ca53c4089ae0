package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/memlock"
)

// openFrom returns a function that opens a backend from starts on, and fails before.
func openFrom(starts time.Time, err error) func() (driver.Driver, error) {
	return func() (driver.Driver, error) {
		if time.Now().Before(starts) {
			return nil, err
		}
		return memlock.New(nil), nil
	}
}

var (
	errRefused  = &driver.Error{Backend: "late", Op: "open", Err: errors.New("connection refused")}
	errPassword = &driver.Error{Backend: "late", Op: "open", Err: errors.New("wrong password"), Permanent: true}
)

// A pod may start before its database.
func TestOpenWaitsForABackendThatStartsLater(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		locks, err := pawl.OpenWith(t.Context(), openFrom(began.Add(2*time.Second), errRefused), nil)
		if err != nil {
			t.Fatalf("Open: %v; want a client once the backend is there", err)
		}
		defer locks.Close()
		wantWithin(t, "Open, whose backend was there after 2 s, took", time.Since(began), 0, 3*time.Second)
	})
}

func TestOpenGivesUpABackendThatDoesNotStart(t *testing.T) {
	for name, test := range map[string]struct {
		err         error
		retryFor    time.Duration
		timeout     time.Duration
		cancel      bool
		least, most time.Duration
	}{
		"after RetryFor":        {err: errRefused, least: 10 * time.Second, most: 11 * time.Second},
		"at once":               {err: errRefused, retryFor: -1},
		"a permanent error":     {err: errPassword},
		"a bad option":          {err: pawl.ErrInvalid},
		"the end of ctx":        {err: errRefused, timeout: 3 * time.Second, least: 3 * time.Second, most: 3 * time.Second},
		"ctx that is cancelled": {err: errRefused, timeout: 3 * time.Second, cancel: true, least: 3 * time.Second, most: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch {
				case test.cancel:
					time.AfterFunc(test.timeout, cancel)
				case test.timeout > 0:
					ctx, cancel = context.WithTimeout(ctx, test.timeout)
					defer cancel()
				}
				want := test.err
				if test.cancel {
					want = context.Canceled
				}
				began := time.Now()
				_, err := pawl.OpenWith(ctx, openFrom(began.Add(time.Hour), test.err), &pawl.Options{RetryFor: test.retryFor})
				if waited := time.Since(began); waited < test.least || waited > test.most || !errors.Is(err, want) {
					t.Errorf("Open returned %v after %v; want %v after %v to %v", err, waited, want, test.least, test.most)
				}
			})
		})
	}
}
