package mongolock

import (
	"testing"

	"github.com/pawl-go/pawl/drivertest"
)

// A queue grows until its entry does not fit into a document. A server's fixed limit is
// 160 times as high as the one here.
func TestAQueueThatDoesNotFit(t *testing.T) {
	t.Parallel()
	server := serve(t)
	url := server.at(server.addr, database())
	holder, other := open(t, url), open(t, url)
	holder.store.most, other.store.most = 100<<10, 100<<10
	drivertest.Full(t, "several names", holder, other)
}
