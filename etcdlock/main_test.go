package etcdlock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// childURLVariable, if set, makes this test binary lock a name, print its fence, and end.
const childURLVariable = "PAWL_TEST_ETCD_CHILD"

func lockOnce(url string) error {
	ctx, cancel := context.WithTimeout(ctx, hangTime)
	defer cancel()
	c, err := pawl.Open(ctx, url, servertest.Patient)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Mutex("held").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
		return fmt.Errorf("a try for a name that another client holds: %w; want ErrHeld", err)
	}
	lease, err := c.Mutex("job").Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Println(lease.Fence(), time.Now().Unix())
	return lease.Release(ctx)
}

// Most of the time tests wait for leases to end, so more tests run at once than there are
// processors. But if too many run, the clock on the shared server loses time, and leases
// last too long.
func TestMain(m *testing.M) {
	if url := os.Getenv(childURLVariable); url != "" {
		if err := lockOnce(url); err != nil {
			panic(err)
		}
		return
	}
	flag.Parse()
	parallel := 16
	if testing.Short() {
		parallel = 8 * runtime.GOMAXPROCS(0)
	}
	leaktest.SetMaxParallel(parallel)
	leaktest.Main(leaktest.Then(m, etcdtest.Stop))
}
