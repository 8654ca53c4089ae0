//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// When a caller gives up while the server is paused, the driver closes the caller's
// connection, although other callers also wait on it. It sends their requests again on
// the next connection, because they still have time.
func TestOtherCallersGetTheirAnswersWhenOneGivesUp(t *testing.T) {
	t.Parallel()
	for protocol, options := range map[string]string{"RESP3": "", "RESP2": "?protocol=2"} {
		for what, step := range map[string]func(driver.Driver, context.Context, driver.Claim) error{
			"try": func(d driver.Driver, ctx context.Context, _ driver.Claim) error {
				_, err := d.Acquire(ctx, mutex("other"))
				return err
			},
			"release": func(d driver.Driver, ctx context.Context, held driver.Claim) error {
				return d.Release(ctx, lease(held))
			},
			"read": func(d driver.Driver, ctx context.Context, _ driver.Claim) error {
				_, err := d.Inspect(ctx, "other")
				return err
			},
		} {
			t.Run(what+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				d := openDriver(t, "redis://"+server.Addr+options)
				longCtx, cancel := context.WithTimeout(ctx, 5*time.Minute)
				defer cancel()
				held := mutex("held")
				must(d.Acquire(longCtx, held))(t)
				for range 3 { // after quick answers, callers make their requests themselves
					must(d.Inspect(longCtx, "held"))(t)
				}
				hastyCtx, giveUp := context.WithTimeout(ctx, 5*time.Minute)
				defer giveUp()
				server.Pause()
				answers := make(chan error, 1)
				gaveUp := make(chan error, 1)
				go func() { _, err := d.Acquire(hastyCtx, mutex("job")); gaveUp <- err }()
				time.Sleep(10 * time.Millisecond)
				go func() { answers <- step(d, longCtx, held) }()
				time.Sleep(10 * time.Millisecond)
				giveUp()
				if err := <-gaveUp; !errors.Is(err, context.Canceled) {
					t.Errorf("the caller that gives up: %v", err)
				}
				time.Sleep(50 * time.Millisecond)
				server.Resume()
				if err := <-answers; err != nil {
					t.Errorf("the other caller: %v", err)
				}
			})
		}
	}
}

// The caller's own goroutine makes this request. Close must end it, by closing the
// connection.
func TestClosingEndsARequestThatItsCallerMakes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := open(t, "redis://"+server.Addr)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for range 3 { // after quick answers, callers make their requests themselves
		must(d.Inspect(ctx, "job"))(t)
	}
	server.Pause()
	defer server.Resume()
	answer := make(chan error, 1)
	go func() { _, err := d.Inspect(ctx, "job"); answer <- err }()
	time.Sleep(10 * time.Millisecond)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answer; !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v; want ErrClosed", err)
	}
}
