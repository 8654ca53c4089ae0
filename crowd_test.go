package pawl_test

import (
	"sync"
	"testing"
	"time"
)

func TestReadersOfOneProcessDoNotWaitForEachOthersAnswers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, f := w.client(nil)
		f.latency = 300 * time.Millisecond
		began := time.Now()
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() { must(t)(c.RWMutex("x").RLock(background)) })
		}
		wg.Wait()
		if took := time.Since(began); took > 301*time.Millisecond {
			t.Errorf("64 readers took %v on a link of 300 ms", took)
		}
	})
}

// However many waiters this process has for permits, no more of them are in the backend's
// queue than can be granted together.
func TestCrowdForPermitsStandsInTheLocalQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, _ := w.client(nil)
		b, f := w.client(nil)
		f.latency = time.Millisecond
		held := must(t)(a.Semaphore("x", 2).Acquire(background, 2))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				l := must(t)(b.Semaphore("x", 2).Acquire(background, 1))
				time.Sleep(10 * time.Millisecond)
				if n := len(w.entry("x").Waiters); n > 2 {
					t.Errorf("%d wait in the backend", n)
				}
				noError(t, l.Release(background))
			})
		}
		time.Sleep(time.Second)
		if n := len(w.entry("x").Waiters); n > 2 {
			t.Errorf("%d wait in the backend", n)
		}
		began, asked := time.Now(), f.count("acquire")
		noError(t, held.Release(background))
		wg.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("100 hand-overs of 10 ms by twos took %v", took)
		}
		if n := f.count("acquire") - asked; n > 2*100 {
			t.Errorf("%d claims for 100 hand-overs", n)
		}
	})
}
