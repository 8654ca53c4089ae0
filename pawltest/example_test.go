package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pawltest"
)

// report is the code that is tested: it works until its lock is lost.
func report(ctx context.Context, locks *pawl.Client) error {
	return locks.Mutex("report").Do(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

func ExampleNew() {
	_ = func(t *testing.T) { // a minute of virtual time, which takes no real time
		synctest.Test(t, func(t *testing.T) {
			backend := pawltest.New(t)
			done := make(chan error)
			go func() { done <- report(t.Context(), backend.Client(nil)) }()

			time.Sleep(time.Minute)
			backend.AssertHeld("report")
			backend.Break("report")
			fmt.Println(errors.Is(<-done, pawl.ErrLost))
		})
	}
}
