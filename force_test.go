package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestForceLockTakesTheLockAndTellsItsHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.two()
		lease := must(t)(a.Mutex("x").Lock(background))
		queued := make(chan error, 1)
		ctx, cancel := context.WithCancel(background)
		go func() { _, err := a.Mutex("x").Lock(ctx); queued <- err }()
		synctest.Wait()
		forced := must(t)(b.Mutex("x").ForceLock(background))
		synctest.Wait()
		var lost *pawl.LostError
		if err := lease.Err(); !errors.As(err, &lost) || lost.Reason != pawl.ReasonBroken || lost.By.PID == 0 {
			t.Errorf("the old holder is told %v", err)
		}
		again := must(t)(b.Mutex("x").ForceLock(background)) // also from oneself
		synctest.Wait()
		isError(t, forced.Err(), pawl.ErrLost)
		isError(t, lease.Release(background), pawl.ErrLost)
		noError(t, again.Err())
		cancel()
		isError(t, <-queued, context.Canceled)
	})
}

func TestForceIsReportedAsFailedOnlyWhenItsEndHasPassed(t *testing.T) {
	for name, fails := range map[string]time.Duration{"no answer": 0, "a broken connection": time.Millisecond} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			victim, _ := w.client(nil)
			held := must(t)(victim.Mutex("x").Lock(background))
			c, s := w.slow(nil, func(op string, n int) time.Duration {
				if op == "acquire" {
					return 3100 * time.Millisecond // its end is after 3 s
				}
				return 0
			})
			s.breaks = func(op string, n int) time.Duration { return fails }
			began := time.Now()
			_, err := c.Mutex("x").ForceLock(background)
			isError(t, err, pawl.ErrUnavailable)
			if took := time.Since(began); took != 3*time.Second {
				t.Errorf("it was reported after %v, and its end is after 3 s", took)
			}
			if n := s.count("acquire"); n > 20 || fails > 0 && n < 3 {
				t.Errorf("it was asked for %d times", n)
			}
			time.Sleep(time.Minute)
			noError(t, held.Err())
		})
	}
}

func TestForceWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		victim, _ := w.client(nil)
		held := must(t)(victim.Mutex("x").Lock(background))
		c, f := w.client(nil)
		lost := 0
		f.set(nil, func(op string) error {
			if lost++; op == "acquire" && lost < 3 {
				return errNet
			}
			return nil
		})
		forced := must(t)(c.Mutex("x").ForceLock(background))
		synctest.Wait()
		isError(t, held.Err(), pawl.ErrLost)
		noError(t, forced.Release(background))
		w.free("x")
	})
}

func TestForceThatIsRefusedForGoodIsReportedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		wrong := &driver.Error{Backend: "test", Op: "acquire", Permanent: true, Err: errors.New("wrong password")}
		f.set(func(string) error { return wrong }, nil)
		began := time.Now()
		_, err := c.Mutex("x").ForceLock(background)
		isError(t, err, pawl.ErrUnavailable)
		if took := time.Since(began); took > 0 {
			t.Errorf("it was reported after %v", took)
		}
	})
}
