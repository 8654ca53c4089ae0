package redislock_test

import (
	"context"
	"testing"

	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

func TestABadDayIsATypedErrorAndEndsWell(t *testing.T) {
	t.Parallel()
	for _, day := range redistest.BadDays {
		t.Run(day.Name, func(t *testing.T) {
			t.Parallel()
			server := day.Start(t)
			url := "redis://" + day.UserInfo() + server.Addr
			day.Check(t, start(t, url), server, func(ctx context.Context) error {
				late, err := redislock.Open(ctx, url)
				if err != nil {
					return err
				}
				defer late.Close()
				_, err = late.Acquire(ctx, mutex("late"))
				return err
			})
		})
	}
}
