package redisscript

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// A client that stops reading at the deadline of ctx may be quicker than the timer of
// ctx. Then it returns a network timeout.
func TestATimeoutAtTheDeadlineIsDeadlineExceeded(t *testing.T) {
	d := &Driver{backend: "redis"}
	silent := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := d.wrapErr(expired, "read", "job", silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want context.DeadlineExceeded", err)
	}
	if err := d.wrapErr(t.Context(), "read", "job", silent); !isDriverError(err) {
		t.Errorf("a timeout before the deadline: %v; want a *driver.Error", err)
	}
	refused := errors.New("OOM command not allowed")
	if err := d.wrapErr(expired, "read", "job", refused); !isDriverError(err) {
		t.Errorf("an error of the server after the deadline: %v; want a *driver.Error", err)
	}
}

func isDriverError(err error) bool {
	_, ok := errors.AsType[*driver.Error](err)
	return ok
}
