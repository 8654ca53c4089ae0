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

// A client that ends the reading of its connection at the deadline of ctx may be quicker
// than the timer of ctx, and calls that a network timeout.
func TestATimeoutAtTheDeadlineIsDeadlineExceeded(t *testing.T) {
	d := &Driver{backend: "redis"}
	silent := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := d.wrapErr(over, "read", "job", silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want the end of the ctx", err)
	}
	if _, is := errors.AsType[*driver.Error](d.wrapErr(t.Context(), "read", "job", silent)); !is {
		t.Error("a timeout that is not the caller's is the server's")
	}
	refused := errors.New("OOM command not allowed")
	if _, is := errors.AsType[*driver.Error](d.wrapErr(over, "read", "job", refused)); !is {
		t.Error("what the server said is lost")
	}
}
