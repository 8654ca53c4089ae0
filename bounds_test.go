package pawl_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

func TestMaxHoldCountsFromTheGrantAlsoAfterAWait(t *testing.T) {
	for _, push := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			a, _ := w.client(nil)
			b, f := w.client(nil)
			f.noSignals = !push
			held := must(t)(a.Mutex("x").Lock(background))
			got := make(chan *pawl.Lease)
			go func() { got <- must(t)(b.Mutex("x", pawl.WithMaxHold(time.Second)).Lock(background)) }()
			time.Sleep(10*time.Second + 300*time.Millisecond)
			noError(t, held.Release(background))
			lease := <-got
			began := time.Now()
			next := make(chan struct{})
			go func() { must(t)(a.Mutex("x").Lock(background)); close(next) }()
			<-lease.Done()
			var lost *pawl.LostError
			if !errors.As(lease.Err(), &lost) || lost.Reason != pawl.ReasonMaxHold {
				t.Errorf("told %v", lease.Err())
			}
			if took := time.Since(began); took < 850*time.Millisecond || took > time.Second {
				t.Errorf("lost after %v", took)
			}
			<-next
			if took := time.Since(began); took > time.Second+10*time.Millisecond {
				t.Errorf("the next one was in after %v", took)
			}
		})
	}
}

func TestMarginThatLeavesNothingOfTheLongestHoldIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		_, err := c.Mutex("x", pawl.WithMargin(15*time.Second), pawl.WithMaxHold(10*time.Second)).Lock(background)
		isError(t, err, pawl.ErrInvalid)
		if f.count("acquire") > 0 {
			t.Error("it was sent")
		}
		l := must(t)(c.Mutex("x", pawl.WithMargin(5*time.Second), pawl.WithMaxHold(10*time.Second)).Lock(background))
		noError(t, l.Release(background))
	})
}

// Release and Close both want to tell the backend. Whoever is first, the lease was held until then.
func TestReleaseRacingCloseIsNoLossButOfTheClient(t *testing.T) {
	for range 500 {
		inWorld(t, func(t *testing.T, w *world) {
			c, _ := w.client(nil)
			lease := must(t)(c.Mutex("x").Lock(background))
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := lease.Release(background); err != nil && !errors.Is(err, pawl.ErrClosed) {
					t.Error(err)
				}
			})
			wg.Go(func() { noError(t, c.Close(background)) })
			wg.Wait()
			w.free("x")
		})
	}
}

func TestCloseWithoutACtxWaitsAsLongAsItTakes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, _ := w.client(nil)
		must(t)(c.Mutex("x").Lock(background))
		noError(t, c.Close(nil)) //nolint:staticcheck // a nil ctx must not leave it half closed
		synctest.Wait()
		w.free("x")
	})
}

func TestSecondCloseWaitsNoLongerThanItsOwnCtx(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		must(t)(c.Mutex("x").Lock(background))
		f.down()
		first := make(chan error)
		go func() { first <- c.Close(background) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		isError(t, c.Close(ctx), context.DeadlineExceeded)
		answer := <-first // after the time that Close has by default
		isError(t, answer, pawl.ErrUnavailable)
		isError(t, c.Close(background), answer)
	})
}

func TestLongestDurationsDoNotOverflow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const ever = time.Duration(math.MaxInt64)
		c, f := w.client(&pawl.Options{TTL: driver.MaxTTL, QueueTTL: driver.MaxTTL, RetryFor: ever, LocalHandoff: time.Second})
		m := c.Mutex("x", pawl.WithLockDelay(driver.MaxTTL))
		lease := must(t)(m.Lock(background))
		next := make(chan *pawl.Lease)
		go func() { next <- must(t)(m.Lock(background)) }()
		time.Sleep(time.Hour)
		noError(t, lease.Err())
		noError(t, lease.Release(background))
		if left := time.Until((<-next).Deadline()); left > driver.MaxTTL-driver.MaxTTL/10 || left < driver.MaxTTL/2 {
			t.Errorf("the term is %v", left)
		}
		if n := f.count("acquire"); n > 3 {
			t.Errorf("%d claims were sent", n)
		}
	})
}
