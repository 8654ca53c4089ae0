package redisscript

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/bubble"
)

// scripted answers each arming by the next of its functions.
type scripted struct{ answers []func() Armed }

func (s *scripted) watch(_ context.Context, keys []string) []Armed {
	all := make([]Armed, len(keys))
	for i := range all {
		all[i] = Armed{Err: errors.New("OOM")}
		if len(s.answers) > 0 {
			all[i] = s.answers[0]()
			s.answers = s.answers[1:]
		}
	}
	return all
}

// The server evicts the name after it has read it for the arming, and before its answer
// arrives; then the server is full, and answers no more.
func TestAChangeThatOvertakesTheAnswerOfAnArmingIsNotForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := &scripted{}
		w := newTracker(server.watch, "pawl:")
		c := driver.Claim{Name: "job", Token: driver.NewToken(), Weight: driver.Exclusive, Limit: driver.Unlimited, TTL: time.Hour}
		state := slices.Concat([]byte{storedVersion, 1}, make([]byte, 44), c.Token[:])
		server.answers = append(server.answers, func() Armed {
			w.changed(c.Name)
			return Armed{State: string(state)}
		})
		ctx, end := context.WithCancel(t.Context())
		told, over := 0, make(chan struct{})
		go func() {
			defer close(over)
			w.run(ctx, func(tokens []driver.Token) { told += len(tokens) })
		}()
		w.claim(&c)
		w.held(c.Token, c.TTL)
		time.Sleep(time.Minute)
		end()
		<-over
		if len(server.answers) > 0 || told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}
