//go:build unix

package doctest

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/pawltest"
)

func TestTheGuideFinishesItsBatchOnSIGTERM(t *testing.T) {
	locks := pawltest.New(t).Client(nil)
	began, finished := make(chan struct{}, 1), false
	batch := func(ctx context.Context) error {
		began <- struct{}{}
		err := takes(300 * time.Millisecond)(ctx)
		finished = err == nil
		return err
	}
	go func() {
		<-began
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
	if err := guideStop(locks, batch); err != nil || !finished {
		t.Errorf("the batch is finished: %v; Shutdown: %v", finished, err)
	}
}
