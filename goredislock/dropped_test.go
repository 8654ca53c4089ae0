package goredislock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// go-redis can check whether an idle connection is dead only if it is a bare socket. A
// server that restarts drops all idle connections. A step notices that only after it has
// sent its request, on one dead connection after the other.
func TestTheStepAfterAllIdleConnectionsWereDroppedSucceeds(t *testing.T) {
	t.Parallel()
	const idle = 6
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, MinIdleConns: idle,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return struct{ net.Conn }{c}, err // hides the socket, as TLS does
		},
	})
	d := newDriver(t, client)
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, forced := servertest.Mutex("job"), servertest.Mutex("forced")
	forced.Force = true
	for _, s := range []struct {
		what string
		step func() error
	}{
		{"try", func() error { _, err := d.Acquire(ctx, c); return err }},
		{"force", func() error { _, err := d.Acquire(ctx, forced); return err }},
		{"read", func() error { _, err := d.Inspect(ctx, "job"); return err }},
		{"release", func() error { return d.Release(ctx, servertest.Lease(c)) }},
	} {
		for client.PoolStats().IdleConns < idle {
			noError(t, ctx.Err())
			time.Sleep(time.Millisecond)
		}
		server.Do("CLIENT", "KILL", "TYPE", "normal")
		if err := s.step(); err != nil {
			t.Errorf("%s: %v", s.what, err)
		}
	}
}

func TestALostAnswerLosesNoLease(t *testing.T) {
	t.Parallel()
	redistest.CheckLostReplies(t, redisscript.Renew.SHA, redisscript.Release.SHA, func(addr string) driver.Driver {
		d := newDriver(t, redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})) // no other idle connection
		t.Cleanup(func() { _ = d.Close() })
		return d
	})
}

// Close comes while go-redis waits for the server to confirm the subscription.
func TestCloseAnswersAClaimThatWaitsForTheSubscription(t *testing.T) {
	t.Parallel()
	proxy := servertest.StartProxy(t, redistest.Start(t).Addr)
	subscribing := proxy.Silence("subscribe")
	d := newDriver(t, redis.NewClient(&redis.Options{Addr: proxy.Addr}))
	answer := make(chan error, 1)
	go func() {
		_, err := d.Acquire(context.WithoutCancel(t.Context()), servertest.Mutex("job"))
		answer <- err
	}()
	<-subscribing
	noError(t, d.Close())
	if err := <-answer; err != nil && !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v; want ErrClosed", err) // or a grant, if the machine paused for a second
	}
}

func TestASilentSubscriptionIsReplaced(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	server := redistest.Start(t)
	proxy := servertest.StartProxy(t, server.Addr)
	far, near := newDriver(t, redis.NewClient(&redis.Options{Addr: proxy.Addr})), newDriver(t, redis.NewClient(&redis.Options{Addr: server.Addr}))
	defer near.Close()
	defer far.Close()
	servertest.CheckSilentConnections(t, proxy, far, near)
}
