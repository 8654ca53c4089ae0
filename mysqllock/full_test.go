package mysqllock_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/mysqltest"
)

// A queue grows until its entry does not fit into a packet. The server or the URL sets
// the limit. Statements are prepared, or, on a caller's pool, have the values in their
// text.
func TestAQueueThatDoesNotFit(t *testing.T) {
	skipIfShort(t, "it fills a queue")
	t.Parallel()
	s := mysqltest.Start(t, "--max-allowed-packet=256K")
	t.Run("Prepared", func(t *testing.T) {
		url := "mysql:" + s.DSN(mysqltest.Database)
		drivertest.Full(t, "max_allowed_packet", openDriver(t, url), openDriver(t, url))
	})
	t.Run("URL", func(t *testing.T) {
		url := "mysql:" + mysqltest.Shared(t).DSN(mysqltest.Shared(t).NewDatabase(t)) + "?maxAllowedPacket=262144"
		drivertest.Full(t, "maxAllowedPacket", openDriver(t, url), openDriver(t, url))
	})
	t.Run("Text", func(t *testing.T) {
		db := s.Open(t, s.NewDatabase(t))
		drivertest.Full(t, "max_allowed_packet", driverOver(t, db, nil), driverOver(t, db, nil))
	})
}

// If the URL has a smaller packet than the server, the driver divides renewals into
// statements of that size.
func TestRenewalsFitIntoThePacketOfTheURL(t *testing.T) {
	s := mysqltest.Shared(t)
	d := openDriver(t, "mysql:"+s.DSN(s.NewDatabase(t))+"?maxAllowedPacket=65536")
	var leases []driver.LeaseRef
	for i := range 40 {
		c := mutex(fmt.Sprintf("job-%d", i))
		gets(t, d, c)
		l := lease(c)
		l.Value = bytes.Repeat([]byte("x"), driver.MaxValue)
		leases = append(leases, l)
	}
	answers, err := d.Renew(ctx, leases)
	noError(t, errors.Join(append(answers, err)...))
}

// The driver also divides the statements that read or poll many long names.
func TestLongNamesFitIntoThePacketOfTheURL(t *testing.T) {
	s := mysqltest.Shared(t)
	url := "mysql:" + s.DSN(s.NewDatabase(t)) + "?maxAllowedPacket=65536"
	holder, d := openDriver(t, url), openDriver(t, url)
	var leases []driver.LeaseRef
	for i := range 200 {
		c := mutex(fmt.Sprintf("%0*d", driver.MaxName, i))
		gets(t, holder, c)
		leases = append(leases, lease(c))
	}
	answers, err := d.Renew(ctx, leases)
	noError(t, errors.Join(append(answers, err)...))

	signals := listen(t, d)
	var last driver.Claim
	for _, l := range leases {
		last = queued(l.Name)
		isRefused(t, d, last)
	}
	noError(t, holder.Release(ctx, leases[len(leases)-1]))
	wantSignal(t, signals, driver.SignalGranted, last.Token)
}
