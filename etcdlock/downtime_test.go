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

// A client that closes while it holds a name starts the timer, so that the lease ends
// although no client is open. If it holds nothing, it starts none.
func TestAClientThatClosesStartsTheTimerForItsOwnLeases(t *testing.T) {
	t.Parallel()
	for what, holds := range map[string]bool{"holds": true, "has released": false} {
		started := false
		for i := 0; i < 5 && !started; i++ { // on a slow machine Close may not wait for it
			url, prefix, c := place(t)
			d := open(t, url)
			m := mutex("job")
			gets(t, d, m)
			if !holds {
				noError(t, d.Release(brief(t), lease(m)))
			}
			noError(t, d.Close())
			timer, err := client(t, c.Addrs()...).Get(brief(t), prefix+"//glass")
			noError(t, err)
			started = len(timer.Kvs) > 0
		}
		if started != holds {
			t.Errorf("a client that %s and closes starts the timer: %v", what, started)
		}
	}
}
