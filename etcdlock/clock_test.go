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

// holdAndDie opens a client that gets a lease and ends without Close, as if killed.
func holdAndDie(t *testing.T, c *etcdtest.Cluster, claim driver.Claim) {
	t.Helper()
	connection := client(t, c.Addrs()...)
	d, err := asDriver(etcdlock.New(connection, nil))
	noError(t, err)
	gets(t, d, claim)
	_ = connection.Close()
	t.Cleanup(func() { _ = d.Close() })
}

// A cron job that tries again and again sees a dead holder expire, and not early,
// although it has no client open between its runs. The job may close its client or just
// exit. Another client may be open and idle.
func TestOneShotTriesSeeADeadHolderExpire(t *testing.T) {
	skipIfShort(t, "it waits for a lease to end")
	t.Parallel()
	for what, how := range map[string]struct{ exits, besideIdleClient bool }{
		"closed": {}, "not closed": {exits: true}, "closed, beside an idle client": {besideIdleClient: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, 1)
			if how.besideIdleClient {
				openDriver(t, c.URL())
			}
			holder := mutex("job")
			holder.TTL = 5 * time.Second
			began := time.Now()
			holdAndDie(t, c, holder)
			for !tryOnce(t, c, mutex("job"), how.exits) {
				if time.Since(began) > hangTime {
					t.Fatal("not granted yet")
				}
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took < holder.TTL {
				t.Errorf("granted after %v; want no grant before the TTL, %v", took, holder.TTL)
			}
		})
	}
}

// tryOnce reports whether a new client's try is granted. With exits, the client loses its
// connection before it closes, so it writes nothing, as if its process had exited.
func tryOnce(t *testing.T, c *etcdtest.Cluster, claim driver.Claim, exits bool) bool {
	t.Helper()
	connection := client(t, c.Addrs()...)
	d, err := asDriver(etcdlock.New(connection, nil))
	noError(t, err)
	_, err = d.Acquire(brief(t), claim)
	if err != nil && !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	if exits {
		_ = connection.Close() // so that Close cannot write
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Close() }()
	if t.Cleanup(func() { <-done }); !exits {
		<-done
	}
	return err == nil
}

// A waiter keeps the clock going even if no other client is open.
func TestTheOnlyClientIsServedWhenTheHolderIsDead(t *testing.T) {
	skipIfShort(t, "it waits for a lease to end")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	d := openDriver(t, c.URL())
	holder, waiter := mutex("job"), queued("job")
	holder.TTL = 3 * time.Second
	holdAndDie(t, c, holder)
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

// A timer advances the clock only once, even if several clients read the timer, because
// it says nothing about leases that began after its start. A tick after the start of a
// timer makes the timer void, and a client then starts another.
func TestATimerCountsOnce(t *testing.T) {
	t.Parallel()
	for began := time.Now(); ; {
		url, prefix, c := ownPrefix(t)
		switch advance, length, took := runTimerOut(t, url, prefix, c); {
		case advance > length+took+time.Second, advance < length && time.Since(began) > hangTime:
			t.Fatalf("the clock advanced by %v in %v; want the timer's %v once", advance, took, length)
		case advance >= length:
			return
		}
	}
}

// runTimerOut makes a client hold a name and close, another client start the timer, and
// the timer run out. It returns the clock's advance when the next client opens, the
// timer's length, and the real time that passed.
func runTimerOut(t *testing.T, url, prefix string, c *etcdtest.Cluster) (advance, length, took time.Duration) {
	t.Helper()
	holder := open(t, url)
	gets(t, holder, mutex("job"))
	noError(t, holder.Close())
	until(t, "the timer", func() error {
		refusedClient := open(t, url)
		refused(t, refusedClient, mutex("job"))
		noError(t, refusedClient.Close()) // it starts the timer
		timer, last, timerLength := timerOf(t, prefix, c)
		if length = timerLength; timer == 0 || timer != last { // the server was too slow for Close, or a tick came
			return fmt.Errorf("the timer names the tick of revision %d; want the last tick, %d", timer, last)
		}
		return nil
	})
	admin := client(t, c.Addrs()...)
	must(admin.Delete(brief(t), prefix+"//sand"))(t) // as if it had run out
	began, before := time.Now(), clockTime(t, admin, prefix)
	next := open(t, url)
	gets(t, next, mutex("other"))
	advance, took = clockTime(t, admin, prefix)-before, time.Since(began)
	noError(t, next.Close())
	return advance, length, took
}

// clockTime returns the time of the clients' clock.
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
