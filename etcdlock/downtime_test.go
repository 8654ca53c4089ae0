package etcdlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
)

// No client was open for two hours, so the clock stood still. A lease that began a moment
// ago is not shown as one of two hours ago.
func TestAClockThatStoodStillDatesNoGrantBack(t *testing.T) {
	t.Parallel()
	url, prefix, c := place(t)
	must(client(t, c.Addrs()...).Put(brief(t), prefix+"//clock", etcdlock.TickAt(time.Now().Add(-2*time.Hour))))(t)
	d := openDriver(t, url)
	m, before := mutex("job"), time.Now()
	m.TTL = time.Hour
	gets(t, d, m)
	after := time.Now()
	checked := func(how string, e driver.Entry, err error) {
		t.Helper()
		if err != nil || len(e.Holders) != 1 || e.Holders[0].Since.Before(before.Truncate(time.Microsecond)) || e.Holders[0].Since.After(after) {
			t.Errorf("%s: %+v, %v; want it held since %v", how, e.Holders, err, before)
		}
		if left := e.Holders[0].ExpiresIn; left < 50*time.Minute || left > 70*time.Minute {
			t.Errorf("%s: it expires in %v", how, left)
		}
	}
	e, err := d.Inspect(brief(t), "job")
	checked("Inspect", e, err)
	for e, err := range d.List(brief(t), "") {
		checked("List", e, err)
	}
}
