package driver_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
)

func TestTheLogTextOfEntriesHoldersAndWaiters(t *testing.T) {
	owner := driver.Owner{Client: "~0123456789abcdef", Host: "web-1", PID: 812, Labels: map[string]string{"run": "7"}}
	second := driver.Owner{Client: "~fedcba9876543210", Host: "web-2", PID: 9}
	for want, value := range map[string]any{
		"x.name=job x.holders=0 x.waiters=0": driver.Entry{Name: "job"},
		`x.name=job x.fence=17 x.holders=1 x.waiters=2 x.holder.fence=17 x.holder.owner="web-1:812 run=7" x.holder.left=29.12s ` +
			"x.next.owner=web-2:9 x.next.left=4s": driver.Entry{
			Name: "job", Fence: 17,
			Holders: []driver.Holder{{Fence: 17, Permits: driver.Exclusive, Owner: owner, ExpiresIn: 29123 * time.Millisecond}},
			Waiters: []driver.Waiter{
				{Permits: driver.Exclusive, Owner: second, ExpiresIn: 4 * time.Second}, {Permits: 1, Owner: owner},
			},
		},
		"x.name=job x.fence=18 x.holders=0 x.waiters=0 x.closed=5s": driver.Entry{Name: "job", Fence: 18, ClosedFor: 5 * time.Second},
		"x.fence=3 x.owner=web-2:9 x.permits=2 x.left=0s x.released=true": driver.Holder{
			Fence: 3, Permits: 2, Limit: 4, Owner: second, Released: true,
		},
		"x.owner=web-2:9 x.kind=shared x.left=1s": driver.Waiter{Permits: 1, Limit: driver.Unlimited, Owner: second, ExpiresIn: time.Second},
	} {
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, nil)).Info("m", "x", value)
		if _, got, _ := strings.Cut(strings.TrimSpace(b.String()), "msg=m "); got != want {
			t.Errorf("%#v is logged as\n%s\nwant\n%s", value, got, want)
		}
	}
}
