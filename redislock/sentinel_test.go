package redislock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
)

// A lease that was replicated is held on the new master, too. Its holder keeps it, and
// when it is released there, the server notifies a waiter.
func TestAFailOverWhileHeldAndWaitedFor(t *testing.T) {
	nightly(t, "fail-overs")
	t.Parallel()
	group := redistest.StartGroup(t)
	d, other := openDriver(t, group.URL()), openDriver(t, group.URL())
	heard := listen(t, other)
	c, waiter := mutex("job"), queued("job")
	c.TTL, waiter.QueueTTL = time.Minute, time.Minute
	first := gets(t, d, c)
	waits(t, other, waiter)
	group.Replicated()
	group.Master.Kill()

	began := time.Now()
	for {
		answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
		if err == nil && answers[0] == nil {
			break
		}
		if errors.Is(errors.Join(append(answers, err)...), driver.ErrNoSuchLease) {
			t.Fatal("the new master does not know the lease")
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal(err, answers)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("held on the new master after %v", time.Since(began))
	hear(t, heard, driver.SignalRetry, driver.Token{}) // messages that were published meanwhile may be lost
	releases(t, d, c)
	for tries := 0; ; tries++ { // by its own polling: the subscription may not be back yet
		second, err := other.Acquire(ctx, waiter)
		if err == nil {
			rises(t, first.Fence, second.Fence)
			return
		}
		if tries == 500 {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A lease that the replica lacked when the master died is forgotten, and granted again:
// the fence is greater, and the first holder learns of it when it renews.
func TestWhatTheReplicaLackedIsGrantedAgainWithAGreaterFence(t *testing.T) {
	nightly(t, "fail-overs")
	t.Parallel()
	group := redistest.StartGroup(t)
	d, other := openDriver(t, group.URL()), openDriver(t, group.URL())
	group.Replicated()
	group.Replica.Do("REPLICAOF", "127.0.0.1", "1") // until its Sentinels notice, after 3 s
	c := mutex("job")
	c.TTL = 5 * time.Minute
	first := gets(t, d, c)
	group.Master.Kill()

	var second driver.Grant
	for tries := 0; ; tries++ {
		var err error
		if second, err = other.Acquire(ctx, mutex("job")); err == nil {
			break
		}
		if tries == 600 || !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("%v; want it granted by the new master", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	rises(t, first.Fence, second.Fence)
	eventually(t, func() error {
		err := renewed(d, c)
		if errors.Is(err, driver.ErrNoSuchLease) {
			return nil
		}
		if err == nil {
			t.Fatal("two leases are renewed")
		}
		return err
	})
}
