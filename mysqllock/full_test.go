package mysqllock_test

import (
	"testing"

	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// A queue grows until its entry does not fit into a packet: with prepared statements, and
// over a caller's pool, where the values are in the text.
func TestAQueueThatDoesNotFit(t *testing.T) {
	nightly(t, "it fills a queue")
	t.Parallel()
	s := mysqltest.Start(t, "--max-allowed-packet=256K")
	t.Run("Prepared", func(t *testing.T) {
		url := "mysql:" + s.DSN(mysqltest.Database)
		drivertest.Full(t, "max_allowed_packet", openDriver(t, url), openDriver(t, url))
	})
	t.Run("Text", func(t *testing.T) {
		db := s.Open(t, s.NewDatabase(t))
		drivertest.Full(t, "max_allowed_packet", driverOver(t, db, nil), driverOver(t, db, nil))
	})
}
