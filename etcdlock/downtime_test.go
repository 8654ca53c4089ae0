package etcdlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// No client was open for two hours, so the clock stood still. A lease that begins now is
// not shown as two hours old.
func TestAClockThatStoodStillDatesNoGrantBack(t *testing.T) {
	t.Parallel()
	url, prefix, c := ownPrefix(t)
	must(client(t, c.Addrs()...).Put(brief(t), prefix+"//clock", etcdlock.TickAt(time.Now().Add(-2*time.Hour))))(t)
	d := openDriver(t, url)
	m, before := mutex("job"), time.Now()
	m.TTL = time.Hour
	gets(t, d, m)
	after := time.Now()
	check := func(how string, e driver.Entry, err error) {
		t.Helper()
		if err != nil || len(e.Holders) != 1 || e.Holders[0].Since.Before(before.Truncate(time.Microsecond)) || e.Holders[0].Since.After(after) {
			t.Errorf("%s: %+v, %v; want it held since %v", how, e.Holders, err, before)
		}
		if left := e.Holders[0].ExpiresIn; left < 50*time.Minute || left > 70*time.Minute {
			t.Errorf("%s: it expires in %v", how, left)
		}
	}
	e, err := d.Inspect(brief(t), "job")
	check("Inspect", e, err)
	listed := servertest.Lists(t, d, "")
	if len(listed) != 1 {
		t.Fatalf("List returns %+v; want one name", listed)
	}
	check("List", listed[0], nil)
	_, err = d.Acquire(brief(t), mutex("job"))
	held, ok := errors.AsType[*driver.HeldError](err)
	if !ok {
		t.Fatalf("Acquire: %v; want it refused", err)
	}
	check("HeldError", driver.Entry{Holders: []driver.Holder{held.Holder}}, nil)
}

// A client that closes while it holds a name, or while the name is closed, starts the
// timer, so that time passes although no client is open. Otherwise it starts no timer.
func TestAClientThatClosesStartsTheTimerForItsOwnLeases(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		starts bool
		ttl    time.Duration
		step   func(d, other *etcdlock.Driver, c driver.Claim, g driver.Grant) // after the grant
	}{
		"holds": {true, time.Hour, func(_, _ *etcdlock.Driver, _ driver.Claim, _ driver.Grant) {}},
		"has released": {false, time.Hour, func(d, _ *etcdlock.Driver, c driver.Claim, _ driver.Grant) {
			noError(t, d.Release(brief(t), lease(c)))
		}},
		"was refused because another client holds": {true, time.Hour, func(d, other *etcdlock.Driver, c driver.Claim, _ driver.Grant) {
			noError(t, d.Release(brief(t), lease(c)))
			gets(t, other, mutex(c.Name))
			refused(t, d, mutex(c.Name))
		}},
		"has broken its lease with a delay": {true, time.Hour, func(d, _ *etcdlock.Driver, c driver.Claim, g driver.Grant) {
			noError(t, d.Break(brief(t), c.Name, g.Fence, time.Hour, driver.Owner{}))
		}},
		"has found that its name is closed": {true, etcdlock.MinTTL, func(d, _ *etcdlock.Driver, c driver.Claim, _ driver.Grant) {
			until(t, "the closed name", func() error {
				_, err := d.Acquire(brief(t), mutex(c.Name))
				if held, ok := errors.AsType[*driver.HeldError](err); ok && held.ClosedFor > 0 {
					return nil
				}
				return fmt.Errorf("%w; want the name closed", err)
			})
		}},
	} {
		started := false
		for i := 0; i < 5 && !started; i++ { // on a slow machine Close may give up before the timer starts
			url, prefix, c := ownPrefix(t)
			d, other := open(t, url), open(t, url)
			m := mutex("job")
			m.TTL, m.LockDelay = tt.ttl, time.Hour
			tt.step(d, other, m, gets(t, d, m))
			noError(t, other.Close())
			noError(t, d.Close())
			timer, last, _ := timerOf(t, prefix, c)
			started = timer == last
		}
		if started != tt.starts {
			t.Errorf("a client %s and closes; timer started: %v, want %v", what, started, tt.starts)
		}
	}
}

// timerOf returns the revision of the tick that the timer names, or 0 without a timer,
// the revision of the last tick, and the timer's length.
func timerOf(t *testing.T, prefix string, c *etcdtest.Cluster) (timer, last int64, length time.Duration) {
	t.Helper()
	admin, seconds := client(t, c.Addrs()...), 0.0
	for _, kv := range must(admin.Get(brief(t), prefix+"//glass"))(t).Kvs {
		must(fmt.Sscan(string(kv.Value), &timer, &seconds))(t)
	}
	return timer, must(admin.Get(brief(t), prefix+"//clock"))(t).Kvs[0].ModRevision, time.Duration(seconds * float64(time.Second))
}

// A client that opens and finds a name closed starts the timer before its claim is
// refused, because it may end without Close.
func TestAClientThatFindsANameClosedStartsTheTimer(t *testing.T) {
	t.Parallel()
	for i, started := 0, false; !started; i++ { // a tick during the start prevents the timer, so try again
		url, prefix, c := ownPrefix(t)
		breaker := open(t, url)
		m := mutex("job")
		g := gets(t, breaker, m)
		noError(t, breaker.Break(brief(t), m.Name, g.Fence, time.Hour, driver.Owner{}))
		noError(t, breaker.Close())
		must(client(t, c.Addrs()...).Delete(brief(t), prefix+"//glass"))(t)
		refused(t, openDriver(t, url), mutex("job"))
		timer, _, _ := timerOf(t, prefix, c)
		if started = timer != 0; !started && i == 5 {
			t.Fatal("the client starts no timer")
		}
	}
}
