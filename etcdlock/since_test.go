package etcdlock_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// No client was open for two hours, so the clock stood still. A lease that began a moment
// ago is not shown as one of two hours ago.
func TestAClockThatStoodStillDatesNoGrantBack(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	if _, err := client(t, c.Addrs()...).Put(brief(t), "pawl//clock", etcdlock.TickAt(time.Now().Add(-2*time.Hour))); err != nil {
		t.Fatal(err)
	}
	d := start(t, c.URL())
	before := time.Now()
	gets(t, d, mutex("job"))
	after := time.Now()
	checked := func(how string, e driver.Entry, err error) {
		t.Helper()
		if err != nil || len(e.Holders) != 1 || e.Holders[0].Since.Before(before.Truncate(time.Microsecond)) || e.Holders[0].Since.After(after) {
			t.Errorf("%s: %+v, %v; want it held since %v", how, e.Holders, err, before)
		}
		if left := e.Holders[0].ExpiresIn; left < 20*time.Second || left > 40*time.Second {
			t.Errorf("%s: it expires in %v", how, left)
		}
	}
	e, err := d.Inspect(brief(t), "job")
	checked("Inspect", e, err)
	for e, err := range d.List(brief(t), "") {
		checked("List", e, err)
	}
}
