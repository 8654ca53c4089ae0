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
	if _, ok := errors.AsType[*driver.Error](d.wrapErr(t.Context(), "read", "job", silent)); !ok {
		t.Error("a timeout before the deadline: want a *driver.Error")
	}
	refused := errors.New("OOM command not allowed")
	if _, ok := errors.AsType[*driver.Error](d.wrapErr(expired, "read", "job", refused)); !ok {
		t.Error("an error of the server after the deadline: want a *driver.Error")
	}
}
