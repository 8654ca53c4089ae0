package mysqllock_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestTheServersClockIsSet(t *testing.T) {
	skipIfShort(t, "it sets a server's clock")
	s, clock := mysqltest.StartWithClock(t)
	url := "mysql:" + s.DSN(mysqltest.Database)
	servertest.ClockEndsLeases(t, openDriver(t, url), openDriver(t, url), clock.Set)
}
