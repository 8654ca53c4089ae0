package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// An attempt first waits for the answer to the subscription. After Close there is no
// answer.
func TestCloseAnswersTheAttemptsThatWaitForTheSubscription(t *testing.T) {
	t.Parallel()
	for what, options := range map[string]string{"RESP3": "?tracking=false", "RESP2": "?protocol=2"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy := servertest.StartProxy(t, redistest.Start(t).Addr)
			d := openDriver(t, "redis://"+proxy.Addr+options)
			subscribing := proxy.Silence("SUBSCRIBE")
			answers := make(chan error, 10)
			for range cap(answers) {
				go func() {
					_, err := d.Acquire(ctx, mutex("job"))
					answers <- err
				}()
			}
			<-subscribing
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			for range cap(answers) {
				select {
				case err := <-answers:
					if err != nil && !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrHeld) {
						t.Errorf("%v; want ErrClosed", err) // or its answer, if the machine paused for a second
					}
				case <-time.After(time.Minute):
					t.Fatal("an attempt still waits")
				}
			}
		})
	}
}

// A proxy that does not know Pub/Sub may not answer. Then locks are slower, but not
// unavailable: the driver claims without a subscription, and waiters poll until the
// subscription is up.
func TestClaimsDoNotNeedTheSubscription(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	proxy := servertest.StartProxy(t, redistest.Start(t).Addr)
	// rueidis notices late that the connection hangs
	d := openDriver(t, "redis://"+proxy.Addr+"?tracking=false&write_timeout=30s")
	signals := listen(t, d)
	proxy.Silence("SUBSCRIBE")
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	holder, waiter := mutex("job"), queued("job")
	holder.TTL, waiter.QueueTTL = time.Minute, time.Minute
	must(d.Acquire(ctx, holder))(t)
	if d.Properties().PushesGrants {
		t.Error("PushesGrants is true")
	}
	waits(t, d, waiter)
	proxy.Heal()
	hear(t, signals, driver.SignalRetry, driver.Token{})
	if !d.Properties().PushesGrants {
		t.Error("PushesGrants is false")
	}
	_ = d.Release(ctx, lease(holder)) // the first attempt finds its connection closed
	_ = d.Release(ctx, lease(holder))
	hear(t, signals, driver.SignalGranted, waiter.Token)
}

func TestPropertiesHaveTheLocation(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for path, want := range map[string]string{"": "", "/0": "", "/1": "/1", "?db=2": "/2"} {
		if location := openDriver(t, "redis://"+server.Addr+path).Properties().Location; location != "redis "+server.Addr+want {
			t.Errorf("Location of %q is %q", path, location)
		}
	}
}

func TestASilentSubscriptionIsReplaced(t *testing.T) {
	skipIfShort(t, "it waits for real time")
	t.Parallel()
	for what, parameters := range map[string]string{"RESP3": "", "RESP2": "?protocol=2"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := servertest.StartProxy(t, server.Addr)
			servertest.CheckSilentConnections(t, proxy, openDriver(t, "redis://"+proxy.Addr+parameters), openDriver(t, "redis://"+server.Addr))
		})
	}
}

func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	servertest.OpensWhenServerStarts(t, "redis://"+server.Addr, server.Run)
}
