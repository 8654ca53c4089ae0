package natslock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/natslock"
)

// fills claims names until there is no room. Then the error is typed, with a hint.
func fills(t *testing.T, d *natslock.Driver) {
	t.Helper()
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = d.Acquire(ctx, mutex(fmt.Sprint("n", i)))
	}
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || e.Permanent || !strings.Contains(e.Hint, "room") {
		t.Errorf("%v; want it to say that there is no room", err)
	}
}

// A full bucket is like a full disk: the error is typed, and nothing is granted. A lease
// expires at the latest, and its key is forgotten.
func TestABucketThatIsFull(t *testing.T) {
	nightly(t, "it fills a bucket")
	t.Parallel()
	server := natstest.Start(t, "")
	_, js := connect(t, server)
	kv := jetstream.StreamConfig{
		Name: "KV_pawl", Subjects: []string{"$KV.pawl.>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, AllowRollup: true, AllowMsgTTL: true, MaxBytes: 8 << 10,
	}
	must(js.CreateStream(ctx, kv))(t)
	d := openDriver(t, "nats://"+server.Addr)
	fills(t, d)
	if got := subjects(t, d, "warning"); len(got) == 0 || got[len(got)-1] != "max bytes" {
		t.Errorf("the doctor finds %q", got)
	}
	kv.MaxBytes = -1
	must(js.UpdateStream(ctx, kv))(t)
	gets(t, d, mutex("room again"))
}

// An account at its limit is like a full bucket.
func TestAnAccountThatIsFull(t *testing.T) {
	nightly(t, "it fills an account")
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: { max_file: 32KB, max_mem: 0 }, users: [
	  { user: all, password: secret } ] } }`)
	d := openDriver(t, "nats://all:secret@"+server.Addr)
	gets(t, d, mutex("held"))
	fills(t, d)
	if got := subjects(t, d, "warning"); !slices.Equal(got, []string{"account"}) {
		t.Errorf("the doctor finds %q", got)
	}
	isRefused(t, d, mutex("held"))
}

// The reply to a write is lost, and the connection with it: a caller that asks again with
// the same token gets the same grant.
func TestALostReplyIsNoLostGrant(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	other := openDriver(t, "nats://"+server.Addr)
	proxy := servertest.StartProxy(t, server.Addr)
	d := openDriver(t, "nats://"+proxy.Addr)
	c := mutex("n")
	happened := proxy.LoseReply("HPUB $KV.pawl.n ")
	for lost := false; !lost; { // on a busy machine it may not arrive before its end
		_, err := d.Acquire(within(t, 3*time.Second), c)
		if err == nil { // it was asked again before the proxy said that it lost the first reply
			select {
			case <-happened:
			case <-time.After(time.Minute):
				t.Fatal("it is granted, and no reply was lost")
			}
		}
		select {
		case <-happened:
			lost = true
		default:
		}
	}
	isRefused(t, other, mutex("n"))
	g := gets(t, d, c)
	if e, err := other.Inspect(ctx, "n"); err != nil || e.Fence != g.Fence || len(e.Holders) != 1 {
		t.Errorf("%+v, %v; want fence %d", e, err, g.Fence)
	}
	releases(t, d, c)
	gets(t, other, mutex("n"))
}

func TestConnectionsThatWentSilentAreReplaced(t *testing.T) {
	nightly(t, "it waits for pings of a silent connection")
	t.Parallel()
	server := natstest.Start(t, "")
	proxy := servertest.StartProxy(t, server.Addr)
	servertest.CheckSilentConnections(t, proxy, openDriver(t, "nats://"+proxy.Addr), openDriver(t, "nats://"+server.Addr))
}

// On a link whose answers take longer than a value that was read may be used, a claim is
// still granted, and its lease renewed and released.
//
// A batch of renewals is read and written in two round trips, however large it is. In
// parts, the values that were read first would be too old when the last ones arrive. That
// happens on a slow machine all the same: then each of them is read again by itself.
func TestALinkWithSlowAnswers(t *testing.T) {
	nightly(t, "it waits for slow answers")
	t.Parallel()
	server := natstest.Start(t, "")
	proxy := servertest.StartProxy(t, server.Addr)
	d := openDriver(t, "nats://"+proxy.Addr)
	leases := make([]driver.LeaseRef, 256) // as many as a client renews at once
	for i := range leases {
		c := mutex(fmt.Sprint("n", i))
		c.TTL = time.Hour // a busy machine needs a while for so many
		gets(t, d, c)
		leases[i] = lease(c)
	}
	proxy.Slow(natslock.MaxLoadAge + 50*time.Millisecond)
	c, limited := mutex("another"), within(t, hangTime) // after which the driver knows that the link is slow
	must(d.Acquire(limited, c))(t)
	renewed := func(some []driver.LeaseRef) {
		t.Helper()
		answers, err := d.Renew(limited, some)
		noError(t, errors.Join(append(answers, err)...))
	}
	renewed([]driver.LeaseRef{lease(c)})
	noError(t, d.Release(limited, lease(c)))
	renewed(leases)
}

// A read is sent again soon, because an election loses it. On a link that is slower than
// that, only the first one is.
func TestASlowLinkIsNotAskedTwice(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		if asked := natslock.Questions(t.Context(), 3, 900*time.Millisecond); !slices.Equal(asked, []int{2, 1, 1}) {
			t.Errorf("three questions are asked %v times, want 2, 1 and 1", asked)
		}
	})
}

// A server that keeps a bucket in memory forgets all leases, and grants the names again
// with greater fences.
func TestAServerThatLosesItsData(t *testing.T) {
	nightly(t, "it loses data")
	t.Parallel()
	server := natstest.Start(t, "")
	servertest.Forgets(t, openDriver(t, "nats://"+server.Addr+"?storage=memory"), openDriver(t, "nats://"+server.Addr), func() {
		server.Kill()
		server.Run()
	})
}

// pushes returns an error unless a driver has push, or has none.
func pushes(d *natslock.Driver, want bool) error {
	if got := d.Properties().PushesGrants; got != want {
		return fmt.Errorf("PushesGrants is %v; want %v", got, want)
	}
	return nil
}

// A queue grows until its entry does not fit into a message.
func TestAQueueThatDoesNotFit(t *testing.T) {
	nightly(t, "it makes queues of hundreds of waiters")
	t.Parallel()
	t.Run("Payload", func(t *testing.T) {
		t.Parallel()
		server := natstest.Start(t, "max_payload: 200KB")
		drivertest.Full(t, "max_payload", openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr))
	})
	t.Run("MessageSize", func(t *testing.T) {
		t.Parallel()
		server := natstest.Start(t, "")
		_, js := connect(t, server)
		c := bucketOf("pawl")
		c.MaxMsgSize = 200 << 10
		must(js.CreateStream(ctx, c))(t)
		drivertest.Full(t, "max_msg_size", openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr))
	})
}

// The places of all waiters and the lease of their holder are in one value.
func TestACrowdCostsNoLease(t *testing.T) {
	nightly(t, "100 clients")
	server := natstest.Start(t, "")
	drivertest.TestHeldInACrowd(t, func() driver.Driver { return openDriver(t, "nats://"+server.Addr) })
}
