package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/redislock"
)

// awaitTracked waits until a lease is tracked. Tracking begins 10 ms after the grant.
func awaitTracked(t *testing.T, server *redistest.Server) {
	t.Helper()
	becomes(t, "a lease is tracked", func() bool {
		return redistest.Field(server.Do("INFO", "stats"), "tracking_total_keys") != "0"
	})
}

func TestAHolderIsNotifiedThatItsNameIsGone(t *testing.T) {
	for change, command := range map[string]string{
		"deleted":                         "DEL pawl:{job}s",
		"deleted before it is tracked":    "DEL pawl:{job}s",
		"held by another client":          "COPY pawl:{other}s pawl:{job}s REPLACE",
		"unlinked":                        "UNLINK pawl:{job}s",
		"expired":                         "PEXPIRE pawl:{job}s 1",
		"overwritten":                     "SET pawl:{job}s x",
		"renamed":                         "RENAME pawl:{job}s other",
		"deleted, with a prepared client": "DEL pawl:{job}s",
	} {
		t.Run(change, func(t *testing.T) {
			server := redistest.Start(t)
			d := openDriver(t, "redis://"+server.Addr)
			if strings.HasSuffix(change, "prepared client") {
				d = openTracked(t, server.Addr)
			}
			signals := listen(t, d)
			c := mutex("job")
			gets(t, openDriver(t, "redis://"+server.Addr+"?tracking=false"), mutex("other"))
			gets(t, d, c)
			if !strings.Contains(change, "before") {
				awaitTracked(t, server)
			}
			server.Do(strings.Fields(command)...)
			if change == "expired" {
				time.Sleep(5 * time.Millisecond)
				server.Do("EXISTS", "pawl:{job}s") // otherwise Redis notices it after about 0.1 s
			}
			hear(t, signals, driver.SignalLost, c.Token) // without a request of the client's own
		})
	}
}

// openTracked returns a driver over a client that Track has prepared.
func openTracked(t *testing.T, addr string) *redisscript.Driver {
	t.Helper()
	o := rueidis.ClientOption{InitAddress: []string{addr}}
	tracking := redislock.Track(&o)
	client, err := rueidis.NewClient(o)
	noError(t, err)
	t.Cleanup(client.Close)
	d, err := asDriver(redislock.New(client, &redislock.Options{Tracking: tracking}))
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestARenewedLeaseIsStillTracked(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	signals := listen(t, d)
	for _, c := range []driver.Claim{mutex("job"), reader("book")} {
		gets(t, d, c)
		awaitTracked(t, server)
		renews(t, d, c)
		time.Sleep(50 * time.Millisecond)
		server.Do("DEL", "pawl:{"+c.Name+"}s")
		hear(t, signals, driver.SignalLost, c.Token)
	}
}

func TestAllClaimsRetryWhenAnyKeyMayHaveChanged(t *testing.T) {
	for _, event := range []struct{ command, options string }{
		{"FLUSHALL", ""}, {"FLUSHDB", ""}, {"CLIENT KILL TYPE pubsub", ""},
		{"CLIENT KILL TYPE pubsub", "?protocol=2"}, // with a Pub/Sub connection and without tracking
	} {
		t.Run(event.command+event.options, func(t *testing.T) {
			server := redistest.Start(t)
			d := openDriver(t, "redis://"+server.Addr+event.options)
			signals := listen(t, d)
			c := mutex("job")
			gets(t, d, c)
			if event.options == "" {
				awaitTracked(t, server)
			}
			_, _ = redistest.Ask(server.Addr, strings.Fields(event.command)...)
			hear(t, signals, driver.SignalRetry, driver.Token{})
			becomes(t, "the subscription is back", func() bool { return strings.Contains(server.Do("PUBSUB", "CHANNELS"), "inbox") })
			_ = d.Release(ctx, lease(c))
			holder, waiter := mutex("job"), queued("job")
			gets(t, d, holder)
			_, _ = d.Acquire(ctx, waiter)
			releases(t, d, holder)
			hear(t, signals, driver.SignalGranted, waiter.Token)
		})
	}
}

// The server notifies each client that holds a name of the others' changes. The client
// then only asks for the next notification (it arms the name), at most a few times a
// second. It runs no script.
func TestHoldersOfOneNameCauseNoScriptsOfEachOther(t *testing.T) {
	skipIfShort(t, "crowds")
	t.Parallel()
	server := redistest.Start(t)
	const clients, permitsPerClient, cycles = 10, 5, 200
	permit := func() driver.Claim {
		c := mutex("pool")
		c.Weight, c.Limit = 1, 1000
		return c
	}
	var holders []*redisscript.Driver
	var held []driver.Claim // one claim of each driver
	for range clients {
		d := openDriver(t, "redis://"+server.Addr)
		holders, held = append(holders, d), append(held, permit())
		gets(t, d, held[len(held)-1])
		for range permitsPerClient - 1 {
			gets(t, d, permit())
		}
	}
	changing := openDriver(t, "redis://"+server.Addr)
	gets(t, changing, permit())
	time.Sleep(100 * time.Millisecond) // all are armed
	received := make(chan driver.Signal, 1000)
	for _, d := range holders {
		t.Cleanup(d.Listen(func(s driver.Signal) { received <- s }))
	}
	server.Do("CONFIG", "RESETSTAT")
	began := time.Now()
	for range cycles {
		c := permit()
		gets(t, changing, c)
		releases(t, changing, c)
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(began)
	time.Sleep(50 * time.Millisecond)
	if n := commands(server, "evalsha", "eval"); n > 2*cycles+2 {
		t.Errorf("%d scripts for %d cycles", n, cycles)
	}
	limit := (clients + 1) * (4 + int(2*took/time.Second))
	if n := commands(server, "client|caching"); n > limit {
		t.Errorf("names were armed %d times in %v, by %d clients", n, took, clients+1)
	}
	for len(received) > 0 {
		if s := <-received; s.Kind == driver.SignalLost {
			t.Fatal("a holder was told to check its lease")
		}
	}

	var signals []<-chan driver.Signal
	for _, d := range holders {
		signals = append(signals, listen(t, d))
	}
	server.Do("DEL", "pawl:{pool}s")
	for i, c := range held { // the leases are still tracked
		hear(t, signals[i], driver.SignalLost, c.Token)
	}
}
