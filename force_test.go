package pawl_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

func TestForceLockFailsOnlyWhenItsTimeIsOver(t *testing.T) {
	for name, failAfter := range map[string]time.Duration{"no answer": 0, "a broken connection": time.Millisecond} {
		runInWorld(t, name, func(t *testing.T, w *world) {
			victim, _ := w.client(nil)
			held := must(victim.Mutex("x").Lock(background))(t)
			c, s := w.slowClient(nil, func(op string, n int) time.Duration {
				if op == "acquire" {
					return 3100 * time.Millisecond // its time ends after 3 s
				}
				return 0
			})
			s.failAfter = func(op string, n int) time.Duration { return failAfter }
			began := time.Now()
			isError(t, errOf(c.Mutex("x").ForceLock(background)), pawl.ErrUnavailable)
			wantEqual(t, "ForceLock failed after", time.Since(began), 3*time.Second)
			if n := s.count("acquire"); n > 20 || failAfter > 0 && n < 3 {
				t.Errorf("%d claims were sent", n)
			}
			time.Sleep(time.Minute)
			noError(t, held.Err())
		})
	}
}
