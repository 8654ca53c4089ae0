package mysqllock_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/mysqltest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The first call checks the server, and the others wait for that: each only as long as
// its own ctx, not the first one's.
func TestNobodyWaitsForTheFirstLookLongerThanItsCtx(t *testing.T) {
	s, db, _ := fresh(t)
	road := servertest.StartProxy(t, s.Addr)
	slow, err := mysqltest.OpenDSN(mysqltest.DSN(road.Addr, name(t, db)))
	noError(t, err)
	t.Cleanup(func() { _ = slow.Close() })
	servertest.FirstCheck(t, driverOver(t, slow, nil), road, "SHOW SESSION VARIABLES")
}
