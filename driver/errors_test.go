package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestErrorMessages(t *testing.T) {
	anna := driver.Owner{Client: "~0123456789abcdef", Host: "web-3", PID: 4711, Labels: map[string]string{"job": "42"}}
	holder := driver.Holder{Fence: 17, Owner: anna, ExpiresIn: 12345678 * time.Microsecond}
	released := holder
	released.Released = true
	for want, err := range map[string]error{
		`pawl: "job" is held by web-3:4711 job=42 (fence 17, 12.35s left)`: &driver.HeldError{
			Name: "job", Holders: 1, Holder: holder,
		},
		`pawl: "job" is held by web-3:4711 job=42 (fence 17, 12.35s left) and 2 more; place 3 in the queue`: &driver.HeldError{
			Name: "job", Holders: 3, Holder: holder, Position: 3,
		},
		`pawl: "job" is held by web-3:4711 job=42 (has released it; fence 17, 12.35s left)`: &driver.HeldError{
			Name: "job", Holders: 1, Holder: released,
		},
		`pawl: "j\x1b[2J" is held by somebody (fence 0, 0s left)`: &driver.HeldError{
			Name: "j\x1b[2J", Holders: 1,
		},
		`pawl: "job" is closed for another 5s, after a holder was broken or expired`: &driver.HeldError{
			Name: "job", ClosedFor: 5 * time.Second,
		},
		`pawl: "job" has waiters ahead; place 2 in the queue`:                                             &driver.HeldError{Name: "job", Position: 2},
		`pawl: broken by web-3:4711 job=42`:                                                               &driver.BrokenError{By: anna},
		`pawl: "job" has the value "9\x00", which is not smaller`:                                         &driver.ValueNotBelowError{Name: "job", Value: []byte("9\x00")},
		`pawl: broken by somebody`:                                                                        &driver.BrokenError{},
		`pawl: TTL is 1ms; allowed: 10ms to 720h (30 days)`:                                               driver.ValidateTTL("TTL", time.Millisecond),
		`pawl: name is empty; allowed: 1 to 255 bytes`:                                                    driver.ValidateName(""),
		`pawl: name "a\x00" has a control character at byte 1; allowed: UTF-8 without control characters`: driver.ValidateName("a\x00"),
		`pawl: name "\xff" is not UTF-8 at byte 0; allowed: UTF-8 without control characters`:             driver.ValidateName("\xff"),
		`pawl: quorum: acquire "job": redis: acquire: EOF`: &driver.Error{
			Backend: "quorum", Op: "acquire", Name: "job", Err: &driver.Error{Backend: "redis", Op: "acquire", Err: io.EOF},
		},
		`pawl: sqlite /tmp/x.db: acquire "job": EOF`: &driver.Error{
			Backend: "sqlite /tmp/x.db", Op: "acquire", Name: "job", Err: io.EOF,
		},
		`pawl: redis: renew: EOF (is it running?)`: &driver.Error{Backend: "redis", Op: "renew", Hint: "is it running?", Err: io.EOF},
		`pawl: held by another`:                    driver.ErrHeld,
		`pawl: not held by this token`:             driver.ErrNoSuchLease,
		`pawl: invalid`:                            driver.ErrInvalid,
		`pawl: client closed; open another`:        driver.ErrClosed,
		`pawl: backend unavailable`:                driver.ErrUnavailable,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("message is %v\nwant       %s", err, want)
		}
	}
}

func TestMessagesRoundTheTimeLeft(t *testing.T) {
	for left, want := range map[time.Duration]string{
		26*time.Hour + 400*time.Millisecond: "26h0m0s", 61500 * time.Millisecond: "1m2s", 1234567 * time.Microsecond: "1.23s",
		123456789 * time.Nanosecond: "123.46ms", 5 * time.Microsecond: "10µs", 0: "0s",
	} {
		err := &driver.HeldError{Name: "x", Holders: 1, Holder: driver.Holder{ExpiresIn: left}}
		if s := fmt.Sprintf(`pawl: "x" is held by somebody (fence 0, %s left)`, want); err.Error() != s {
			t.Errorf("with %v left the message is %v, want %s", left, err, s)
		}
	}
}

// errors.Is finds the listed errors in each error, wrapped or not, and no other one.
func TestEachErrorMatchesOnlyItsSentinels(t *testing.T) {
	all := []error{
		driver.ErrHeld, driver.ErrNoSuchLease, driver.ErrValueNotBelow, driver.ErrInvalid, driver.ErrClosed, driver.ErrUnavailable,
		context.Canceled, context.DeadlineExceeded, io.EOF,
	}
	for _, c := range []struct {
		err error
		is  []error
	}{
		{&driver.HeldError{}, []error{driver.ErrHeld}},
		{&driver.BrokenError{}, []error{driver.ErrNoSuchLease}},
		{&driver.ValueNotBelowError{}, []error{driver.ErrValueNotBelow}},
		{&driver.InvalidError{}, []error{driver.ErrInvalid}},
		{&driver.Error{Err: io.EOF}, []error{driver.ErrUnavailable, io.EOF}},
		{&driver.Error{Err: fmt.Errorf("dial: %w", io.EOF)}, []error{driver.ErrUnavailable, io.EOF}},
		{driver.ErrClosed, []error{driver.ErrClosed}},
	} {
		for _, target := range all {
			want := slices.Contains(c.is, target)
			if got := errors.Is(c.err, target); got != want {
				t.Errorf("errors.Is(%T, %v) is %v", c.err, target, got)
			}
			if got := errors.Is(fmt.Errorf("while working: %w", c.err), target); got != want {
				t.Errorf("errors.Is(a wrapped %T, %v) is %v", c.err, target, got)
			}
		}
	}
}
