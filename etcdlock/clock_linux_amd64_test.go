package etcdlock_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/internal/timeshift"
)

// The server's wall clock is set a minute forward and back. This makes no lease longer or
// shorter, and no client notices.
func TestTheServersClockIsSet(t *testing.T) {
	skipIfShort(t, "it waits for leases to end")
	t.Parallel()
	clock := timeshift.NewGo(t, 0)
	c := etcdtest.Setup{Members: 1, Begin: clock.Start}.Start(t)
	a, b := openDriver(t, c.URL()), openDriver(t, c.URL())
	servertest.ClockEndsNothing(t, a, b, servertest.BelowSwing, func(by time.Duration) {
		clock.Set(by)
		until(t, "the server's clock", func() error {
			if off := ahead(t, c.Members[0]); (off - by).Abs() > 5*time.Second {
				return fmt.Errorf("the server's clock is off by %v; want %v", off, by)
			}
			return nil
		})
	})
}

// ahead returns the time by which a server's clock is ahead of ours, to within some
// seconds.
func ahead(t *testing.T, m *etcdtest.Member) time.Duration {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.Addr+"/version", nil)
	noError(t, err)
	r, err := http.DefaultClient.Do(request)
	noError(t, err)
	defer r.Body.Close()
	serverTime, err := http.ParseTime(r.Header.Get("Date"))
	noError(t, err)
	return time.Until(serverTime)
}
