package etcdlock_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
)

// dies opens a client that ends without Close, as a killed process does.
func dies(t *testing.T, c *etcdtest.Cluster, claim driver.Claim) {
	t.Helper()
	connection := client(t, c.Addrs()...)
	d, err := asDriver(etcdlock.New(connection, nil))
	noError(t, err)
	gets(t, d, claim)
	_ = connection.Close()
	t.Cleanup(func() { _ = d.Close() })
}

// A job that tries, fails and ends, again and again, sees a dead holder expire, and not
// early, though no client is open in between: whether it closes its client or just exits.
// So it is beside a client that is open, and does nothing.
func TestOneShotTriesSeeADeadHolderEnd(t *testing.T) {
	nightly(t, "it waits for a lease to end")
	t.Parallel()
	for what, how := range map[string]struct{ exits, beside bool }{
		"closed": {}, "not closed": {exits: true}, "closed, beside another": {beside: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, 1)
			if how.beside {
				openDriver(t, c.URL())
			}
			holder := mutex("job")
			holder.TTL = 5 * time.Second
			began := time.Now()
			dies(t, c, holder)
			for !tries(t, c, mutex("job"), how.exits) {
				if time.Since(began) > hangTime {
					t.Fatal("not granted yet")
				}
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took < holder.TTL {
				t.Errorf("granted after %v; the lease was of %v", took, holder.TTL)
			}
		})
	}
}

// tries is a process that tries once, and ends without Close if it exits.
func tries(t *testing.T, c *etcdtest.Cluster, claim driver.Claim, exits bool) bool {
	t.Helper()
	connection := client(t, c.Addrs()...)
	d, err := asDriver(etcdlock.New(connection, nil))
	noError(t, err)
	_, err = d.Acquire(brief(t), claim)
	if err != nil && !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	if exits {
		_ = connection.Close() // so that closing the driver writes nothing, slowly
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Close() }()
	if t.Cleanup(func() { <-done }); !exits {
		<-done
	}
	return err == nil
}

// A client that waits keeps the clock going by itself.
func TestALonelyWaiterIsServedWhenTheHolderIsDead(t *testing.T) {
	nightly(t, "it waits for a lease to end")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	d := openDriver(t, c.URL())
	holder, waiter := mutex("job"), queued(mutex("job"))
	holder.TTL = 3 * time.Second
	dies(t, c, holder)
	refused(t, d, waiter)
	for began := time.Now(); ; {
		time.Sleep(3500 * time.Millisecond) // on a slow machine the clock is late
		_, err := d.Acquire(brief(t), waiter)
		if err == nil {
			return
		}
		if time.Since(began) > hangTime {
			t.Fatalf("%v; want it granted", err)
		}
	}
}

// The time of a timer counts once, however often it is read: it says nothing about leases
// that the client which started it had not seen. A tick after the timer makes it void,
// and then it is started again.
func TestATimerCountsOnce(t *testing.T) {
	t.Parallel()
	for began := time.Now(); ; {
		url, prefix, c := ownPrefix(t)
		switch went, passed, took := runsOut(t, url, prefix, c); {
		case went > passed+took+time.Second, went < passed && time.Since(began) > hangTime:
			t.Fatalf("the clock went on by %v in %v; the timer was of %v", went, took, passed)
		case went >= passed:
			return
		}
	}
}

// runsOut makes a client hold a name and leave, another one start the timer, and the
// timer run out. It returns by how much the clock goes on when the next client opens, the
// time of the timer, and how long it really took.
func runsOut(t *testing.T, url, prefix string, c *etcdtest.Cluster) (went, passed, took time.Duration) {
	t.Helper()
	holds := open(t, url)
	gets(t, holds, mutex("job"))
	noError(t, holds.Close())
	until(t, "the timer", func() error {
		tries := open(t, url)
		refused(t, tries, mutex("job"))
		noError(t, tries.Close()) // it starts the timer
		timer, last, lasts := timerOf(t, prefix, c)
		if passed = lasts; timer == 0 || timer != last { // the server was too slow for Close, or a tick came since
			return fmt.Errorf("it names tick %d of %d", timer, last)
		}
		return nil
	})
	admin := client(t, c.Addrs()...)
	must(admin.Delete(brief(t), prefix+"//sand"))(t) // as if it had run out
	began, before := time.Now(), clockTime(t, admin, prefix)
	next := open(t, url)
	gets(t, next, mutex("other"))
	went, took = clockTime(t, admin, prefix)-before, time.Since(began)
	noError(t, next.Close())
	return went, passed, took
}

// clockTime returns the time of the clock.
func clockTime(t *testing.T, admin *clientv3.Client, prefix string) time.Duration {
	t.Helper()
	r, err := admin.Get(brief(t), prefix+"//clock")
	if err != nil || len(r.Kvs) == 0 {
		t.Fatal("no clock", err)
	}
	first, _, _ := strings.Cut(string(r.Kvs[0].Value), " ")
	i, err := strconv.ParseInt(first[1:], 10, 64)
	noError(t, err)
	return time.Duration(i) * time.Microsecond
}
