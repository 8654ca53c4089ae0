package natslock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/drivertest"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/bubble"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/natslock"
)

// fillNames claims names until there is no room. The error must then have a hint.
func fillNames(t *testing.T, d *natslock.Driver) {
	t.Helper()
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = d.Acquire(ctx, mutex(fmt.Sprint("n", i)))
	}
	servertest.WantDriverError(t, err, false, "room")
}

// A full bucket grants no lease, and its error has a hint.
func TestABucketThatIsFull(t *testing.T) {
	skipIfShort(t, "it fills a bucket")
	t.Parallel()
	server := natstest.Start(t, "")
	_, js := connect(t, server)
	config := jetstream.StreamConfig{
		Name: "KV_pawl", Subjects: []string{"$KV.pawl.>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowDirect: true, AllowRollup: true, AllowMsgTTL: true, MaxBytes: 8 << 10,
	}
	must(js.CreateStream(ctx, config))(t)
	d := openDriver(t, "nats://"+server.Addr)
	fillNames(t, d)
	if got := subjects(t, d, "warning"); len(got) == 0 || got[len(got)-1] != "max bytes" {
		t.Errorf("the doctor finds %q", got)
	}
	config.MaxBytes = -1
	must(js.UpdateStream(ctx, config))(t)
	gets(t, d, mutex("room again"))
}

// An account at its limit grants no lease, and its error has a hint.
func TestAnAccountThatIsFull(t *testing.T) {
	skipIfShort(t, "it fills an account")
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: { max_file: 32KB, max_mem: 0 }, users: [
	  { user: all, password: secret } ] } }`)
	d := openDriver(t, "nats://all:secret@"+server.Addr)
	gets(t, d, mutex("held"))
	fillNames(t, d)
	if got := subjects(t, d, "warning"); !slices.Equal(got, []string{"account"}) {
		t.Errorf("the doctor finds %q", got)
	}
	isRefused(t, d, mutex("held"))
}

// The reply to a write is lost, and the connection with it. A caller that retries with
// the same token gets the same grant.
func TestALostReplyLosesNoGrant(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	other := openDriver(t, "nats://"+server.Addr)
	proxy := servertest.StartProxy(t, server.Addr)
	d := openDriver(t, "nats://"+proxy.Addr)
	c := mutex("n")
	lost := proxy.LoseReply("HPUB $KV.pawl.n ")
	basictest.Eventually(t, "the write whose reply is lost counts", func() bool {
		_, _ = d.Acquire(within(t, 3*time.Second), c)
		select {
		case <-lost:
		default:
			return false
		}
		if e, err := other.Inspect(ctx, "n"); err == nil && len(e.Holders) == 1 {
			return true
		}
		lost = proxy.LoseReply("HPUB $KV.pawl.n ") // try again: on a busy machine the write was too late
		return false
	})
	isRefused(t, other, mutex("n"))
	g := gets(t, d, c)
	if e, err := other.Inspect(ctx, "n"); err != nil || e.Fence != g.Fence || len(e.Holders) != 1 {
		t.Errorf("%+v, %v; want fence %d", e, err, g.Fence)
	}
	releases(t, d, c)
	gets(t, other, mutex("n"))
}

func TestConnectionsThatWentSilentAreReplaced(t *testing.T) {
	skipIfShort(t, "it waits for pings of a silent connection")
	t.Parallel()
	server := natstest.Start(t, "")
	proxy := servertest.StartProxy(t, server.Addr)
	servertest.CheckSilentConnections(t, proxy, openDriver(t, "nats://"+proxy.Addr), openDriver(t, "nats://"+server.Addr))
}

// If answers take longer than maxLoadAge, a claim is still granted, and its lease renewed
// and released.
//
// The driver reads and writes a batch of renewals in two round trips. If it read them in
// parts, the first values would be too old when the last ones arrive. On a slow machine
// that can still happen. Then the driver reads each value again.
func TestALinkWithSlowAnswers(t *testing.T) {
	skipIfShort(t, "it waits for slow answers")
	t.Parallel()
	server := natstest.Start(t, "")
	proxy := servertest.StartProxy(t, server.Addr)
	d := openDriver(t, "nats://"+proxy.Addr)
	leases := make([]driver.LeaseRef, 256) // as many as a client renews at once
	for i := range leases {
		c := mutex(fmt.Sprint("n", i))
		c.TTL = time.Hour // because a busy machine is slow
		gets(t, d, c)
		leases[i] = lease(c)
	}
	proxy.Slow(natslock.MaxLoadAge + 50*time.Millisecond)
	c, limited := mutex("another"), within(t, hangTime)
	must(d.Acquire(limited, c))(t) // shows the driver that the link is slow
	renewAll := func(some []driver.LeaseRef) {
		t.Helper()
		answers, err := d.Renew(limited, some)
		noError(t, errors.Join(append(answers, err)...))
	}
	renewAll([]driver.LeaseRef{lease(c)})
	noError(t, d.Release(limited, lease(c)))
	renewAll(leases)
}

// The driver sends a read again soon, because an election can lose it. On a slow link it
// does so only for the first read, before it knows the round-trip time.
func TestReadsOnASlowLinkAreSentOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		if requests := natslock.CountReads(t.Context(), 3, 900*time.Millisecond); !slices.Equal(requests, []int{2, 1, 1}) {
			t.Errorf("three reads take %v requests; want 2, 1 and 1", requests)
		}
	})
}

// A restarted server with a bucket in memory has lost all leases, and grants the names
// again with greater fences.
func TestAServerThatLosesItsData(t *testing.T) {
	skipIfShort(t, "it loses data")
	t.Parallel()
	server := natstest.Start(t, "")
	servertest.Forgets(t, openDriver(t, "nats://"+server.Addr+"?storage=memory"), openDriver(t, "nats://"+server.Addr), server.Restart)
}

// checkPush returns an error unless PushesGrants is as wanted.
func checkPush(d *natslock.Driver, want bool) error {
	if got := d.Properties().PushesGrants; got != want {
		return fmt.Errorf("PushesGrants is %v; want %v", got, want)
	}
	return nil
}

// A queue grows until its entry is too large for a message.
func TestAQueueThatDoesNotFit(t *testing.T) {
	skipIfShort(t, "it makes queues of hundreds of waiters")
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

// One value has the lease and the places of 100 waiters. The holder still renews its
// lease.
func TestACrowdCostsNoLease(t *testing.T) {
	skipIfShort(t, "100 clients")
	server := natstest.Start(t, "")
	drivertest.TestHeldInACrowd(t, func() driver.Driver { return openDriver(t, "nats://"+server.Addr) })
}
