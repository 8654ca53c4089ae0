package etcdlock_test

import (
	"testing"

	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// A queue grows until its entry is too large for a request.
func TestAQueueThatDoesNotFit(t *testing.T) {
	skipIfShort(t, "it makes queues of hundreds of waiters")
	t.Parallel()
	c := etcdtest.Start(t, 1, "--max-request-bytes=200000")
	drivertest.Full(t, "--max-request-bytes", openDriver(t, c.URL()), openDriver(t, c.URL()))
}
