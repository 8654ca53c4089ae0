//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/goredislock"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock"
)

// driversThatWait returns two drivers of each package that wait for one replica.
func driversThatWait(t *testing.T, server *redistest.Server, timeout time.Duration) map[string][2]driver.Driver {
	t.Helper()
	url := "redis://" + server.Addr + "?wait_replicas=1&wait_timeout=" + timeout.String()
	goRedis := [2]driver.Driver{}
	for i := range goRedis {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute})
		d, err := goredislock.New(client, &goredislock.Options{WaitReplicas: 1, WaitTimeout: timeout})
		noError(t, err)
		t.Cleanup(func() { _, _ = d.Close(), client.Close() })
		goRedis[i] = d
	}
	return map[string][2]driver.Driver{"redislock": {openDriver(t, url), openDriver(t, url)}, "goredislock": goRedis}
}

// waitCount returns how many WAIT commands the server has run.
func waitCount(server *redistest.Server) (n int) {
	stat := redistest.Field(server.Do("INFO", "commandstats"), "cmdstat_wait")
	_, _ = fmt.Sscanf(stat, "calls=%d", &n)
	return n
}

func TestAGrantIsOnTheReplicaBeforeAcquireReturns(t *testing.T) {
	server := redistest.Start(t)
	replica := redistest.StartReplica(t, server)
	for who, two := range driversThatWait(t, server, 20*time.Second) {
		for i, kind := range []func(string) driver.Claim{mutex, reader} {
			name := fmt.Sprint(who, i)
			gets(t, two[0], kind(name+" to load the scripts"))
			server.Do("CONFIG", "RESETSTAT")
			for range 20 {
				c := kind(name)
				g := gets(t, two[0], c)
				if seen := entry(t, replica, name); len(seen.Holders) != 1 || seen.Holders[0].Fence != g.Fence {
					t.Fatalf("%s: the replica has %+v; want fence %d", who, seen.Holders, g.Fence)
				}
				renews(t, two[0], c)
				if again := gets(t, two[0], c); again.Fence != g.Fence {
					t.Errorf("%s: fence %d; want %d as before", who, again.Fence, g.Fence)
				}
				isRefused(t, two[1], mutex(name))
				releases(t, two[0], c)
			}
			if n := waitCount(server); n != 40 {
				t.Errorf("%s: %d WAITs for 20 grants and 20 repetitions; want 40, and none for refusals, renewals and releases", who, n)
			}
		}
	}
}

// The connection of the releaser has written the grant. So the releaser does not send the
// grant to the waiter, but tells it to retry.
func TestAWaiterConfirmsItsGrant(t *testing.T) {
	server := redistest.Start(t)
	replica := redistest.StartReplica(t, server)
	for who, two := range driversThatWait(t, server, 20*time.Second) {
		signals := servertest.Listen(t, two[1].(driver.Signaler))
		c, next := mutex(who), queued(who)
		next.TTL, next.QueueTTL = time.Hour, time.Minute
		gets(t, two[0], c)
		_, _ = two[1].Acquire(ctx, next)
		releases(t, two[0], c)
		s := driver.Signal{}
		for s.Token != next.Token {
			s = <-signals
		}
		if s.Kind == driver.SignalGranted {
			t.Error("the signal is SignalGranted; want SignalRetry")
		}
		g := gets(t, two[1], next)
		if seen := entry(t, replica, who); len(seen.Holders) != 1 || seen.Holders[0].Fence != g.Fence || seen.Holders[0].ExpiresIn < next.TTL*9/10 {
			t.Errorf("%s: the replica has %+v; want fence %d", who, seen.Holders, g.Fence)
		}
		releases(t, two[1], next)
	}
}

func TestWithoutAReplicaNothingIsGrantedOrKept(t *testing.T) {
	skipIfShort(t, "replicas that stand still")
	server := redistest.Start(t)
	replica := redistest.StartReplica(t, server)
	for who, two := range driversThatWait(t, server, 300*time.Millisecond) {
		held := mutex("held " + who)
		acquireEventually(t, two[0], held)
		replica.Pause()
		began := time.Now()
		_, err := two[0].Acquire(ctx, mutex(who))
		took := time.Since(began)
		bounded, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		c := mutex(who)
		_, short := two[0].Acquire(bounded, c) // the last 50 ms are for the error
		cancel()
		if errors.Is(short, context.DeadlineExceeded) { // on a busy machine, 50 ms may be too short
			short = err
			_ = two[0].Release(ctx, lease(c))
		}
		_, queue := two[0].Acquire(ctx, queued(who))
		replica.Resume()
		for _, err := range []error{err, short, queue} {
			if unavailable(t, err, false, "wait_replicas"); !strings.Contains(err.Error(), "acknowledged by 0 of 1 replicas within") {
				t.Errorf("%s: %v; want the number of acknowledgments", who, err)
			}
		}
		if took < 250*time.Millisecond || took > 20*time.Second {
			t.Errorf("%s: Acquire took %v; want the 300 ms of wait_timeout", who, took)
		}
		if seen, err := two[0].Inspect(ctx, who); err != nil || len(seen.Holders)+len(seen.Waiters) > 0 {
			t.Errorf("%s: %+v, %v; want no holder and no waiter", who, seen, err)
		}
		renews(t, two[0], held) // a held lease needs no replica
		releases(t, two[0], held)
		acquireEventually(t, two[0], mutex(who+" again"))
	}
}

// acquireEventually repeats a claim until it is granted. The replica may be slow, because
// it shares two cores with others.
func acquireEventually(t *testing.T, d driver.Driver, c driver.Claim) {
	t.Helper()
	basictest.Until(t, "a grant", func() error { _, err := d.Acquire(ctx, c); return err })
}

// A driver could answer a repeated claim without a write if the claim does not prolong
// its lease. But WAIT covers only the writes of its own connection, so a confirmation
// always writes.
func TestAConfirmationIsAlwaysAWrite(t *testing.T) {
	server := redistest.Start(t)
	redistest.StartReplica(t, server)
	d := openDriver(t, "redis://"+server.Addr+"?wait_replicas=1&wait_timeout=20s")
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		c := kind("job")
		gets(t, d, c)
		c.TTL = time.Second // shorter than the 30 s of the lease
		server.Do("CONFIG", "RESETSTAT")
		gets(t, d, c)
		if stat := redistest.Field(server.Do("INFO", "commandstats"), "cmdstat_set"); stat == "" {
			t.Error("nothing was written")
		}
		c.TTL = 30 * time.Second
		releases(t, d, c)
	}
}

// In a cluster the confirmation goes to the node of the name, even while the slot moves.
func TestAGrantIsConfirmedInACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	from, to, slot := redistest.PlanMove(nodes, "job")
	redistest.StartClusterReplica(t, nodes, from)
	redistest.StartClusterReplica(t, nodes, to)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	goRedis, err := goredislock.New(client, &goredislock.Options{WaitReplicas: 1, WaitTimeout: 20 * time.Second})
	noError(t, err)
	t.Cleanup(func() { _ = goRedis.Close() })
	d := openDriver(t, "redis://"+nodes[0].Addr+"?wait_replicas=1&wait_timeout=20s")
	cycle := func() {
		for _, d := range []driver.Driver{d, goRedis} {
			c := mutex("job")
			gets(t, d, c)
			releases(t, d, c)
		}
	}
	for range 2 {
		cycle()
		redistest.MoveSlot(nodes, slot, from, to, cycle)
		cycle()
		from, to = to, from
	}
}

// entry returns a replica's entry for a name.
func entry(t *testing.T, replica *redistest.Server, name string) driver.Entry {
	t.Helper()
	d, err := redislock.Open(ctx, "redis://"+replica.Addr+"?push=false&tracking=false")
	noError(t, err)
	defer d.Close()
	e, err := d.Inspect(ctx, name)
	noError(t, err)
	return e
}
