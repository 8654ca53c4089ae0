package redislock_test

import (
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestALostAnswerIsNoLostLease(t *testing.T) {
	t.Parallel()
	redistest.CheckLostReplies(t, redisscript.Renew.SHA, redisscript.Release.SHA, func(addr string) driver.Driver {
		return openDriver(t, "redis://"+addr+"?tracking=false") // so that every request with the key is a step
	})
}
