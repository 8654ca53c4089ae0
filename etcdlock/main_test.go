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

// childsURL has a process of these tests lock one name, print the fence, and end.
const childsURL = "PAWL_TEST_ETCD_CHILD"

func lockOnce(url string) error {
	ctx, cancel := context.WithTimeout(ctx, hangTime)
	defer cancel()
	c, err := pawl.Open(ctx, url, servertest.Patient)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Mutex("held").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
		return fmt.Errorf("a try of what another client holds: %w", err)
	}
	lease, err := c.Mutex("job").Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Println(lease.Fence(), time.Now().Unix())
	return lease.Release(ctx)
}

// Tests wait for leases of seconds to end most of the time, so more run at once than
// there are processors. But where they are busy, the clock of the shared server's clients
// loses time, and leases last too long.
func TestMain(m *testing.M) {
	if url := os.Getenv(childsURL); url != "" {
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
	leaktest.Parallel(parallel)
	leaktest.Main(leaktest.Then(m, etcdtest.Stop))
}
