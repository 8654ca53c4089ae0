package goredislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

func TestAPoolThatIsUsedUpHasAHint(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, PoolSize: 1, PoolTimeout: time.Millisecond})
	d := newDriver(t, client)
	defer d.Close()
	only := client.Conn() // the work of the program takes the only connection
	defer only.Close()
	noError(t, only.Ping(t.Context()).Err())
	_, err := d.Inspect(t.Context(), "job")
	failed, ok := errors.AsType[*driver.Error](err)
	if !ok || !strings.Contains(failed.Hint, "PoolSize") {
		t.Errorf("%v; want advice about the pool", err)
	}
}
