package postgreslock_test

import (
	"context"
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil { // drivertest lets many subtests wait side by side
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
