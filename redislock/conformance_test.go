package redislock_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil { // drivertest lets many subtests wait side by side
		panic(err)
	}
	// rueidis waits a second between two looks at the Sentinels, and is not told when its client is closed; that ends by itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

func TestConformance(t *testing.T) {
	server := redistest.Start(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, "redis://"+server.Addr) },
		Unit: time.Second,
	})
}

func open(t testing.TB, url string) *redislock.Driver {
	t.Helper()
	d, err := redislock.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
