package redislock_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/redislock"
)

func TestAScriptThatTheServerForgotIsSentAgain(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	flush := func() { server.Do("SCRIPT", "FLUSH") }
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		c, waiter := kind("job"), queued("job")
		gets(t, d, c)
		flush()
		renews(t, d, c)
		flush()
		waits(t, d, waiter)
		flush()
		if e, err := d.Inspect(ctx, "job"); err != nil || len(e.Holders) != 1 || len(e.Waiters) != 1 {
			t.Fatalf("%+v, %v", e, err)
		}
		flush()
		releases(t, d, c)
		flush()
		g := gets(t, d, waiter)
		flush()
		noError(t, d.Break(ctx, "job", g.Fence, 0, driver.Owner{}))
		flush()
	}
}

func TestFencesRiseWhenTheServerLosesItsData(t *testing.T) {
	server := redistest.Start(t)
	url := "redis://" + server.Addr
	servertest.Forgets(t, openDriver(t, url), openDriver(t, url), func() { server.Kill(); server.Run() })
}

func TestAFenceThatRedisCannotKeepIsAPermanentError(t *testing.T) {
	d := openDriver(t, "redis://"+redistest.Start(t).Addr)
	c := mutex("job")
	g := gets(t, d, c)
	_, err := d.RaiseFence(ctx, lease(c), 1<<52)
	unavailable(t, err, true, "future")
	if again := gets(t, d, c); again.Fence != g.Fence {
		t.Errorf("fence %d, want %d as before", again.Fence, g.Fence)
	}
}

func TestADriverThatConnectsLaterOpensWithoutItsServer(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	d := openLater(t, server.Addr)
	for range 2 {
		_, err := d.Acquire(ctx, mutex("job"))
		unavailable(t, err, false, "no server listens there")
	}
	server.Run()
	holder, waiter := mutex("job"), queued("job")
	gets(t, d, holder)
	signals := listen(t, d)
	_, _ = d.Acquire(ctx, waiter)
	becomes(t, "the driver subscribes again by itself", func() bool { return d.Properties().PushesGrants })
	releases(t, d, holder)
	hear(t, signals, driver.SignalGranted, waiter.Token)
}

// openLater opens a driver that connects later, as redlock does.
func openLater(t *testing.T, addr string) *redisscript.Driver {
	t.Helper()
	d, err := redislock.Open(redisscript.ConnectLater(ctx), "redis://"+addr)
	noError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d.(*redisscript.Driver)
}

func TestAMissingDatabaseHasAHint(t *testing.T) {
	server := redistest.Start(t)
	for _, number := range []string{"/99", "?db=99"} {
		_, err := redislock.Open(ctx, "redis://"+server.Addr+number)
		unavailable(t, err, true, "CONFIG GET databases")
	}
}

func TestRequestsToADeadServerReturnATypedErrorAtOnce(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	c := mutex("job")
	gets(t, d, c)
	server.Kill()
	quickest := time.Hour
	for tries := 0; tries < 10 && quickest > 2*time.Second; tries++ { // the machine may stand still
		began := time.Now()
		_, err := d.Acquire(ctx, mutex("other"))
		unavailable(t, err, false, "")
		unavailable(t, d.Release(ctx, lease(c)), false, "")
		quickest = min(quickest, time.Since(began))
	}
	if quickest > 2*time.Second {
		t.Errorf("the errors took %v", quickest)
	}
}

// versionOf returns the first byte of a stored state.
func versionOf(t *testing.T, server *redistest.Server, state string) string {
	t.Helper()
	answer := server.Do("GETRANGE", state, "0", "0")
	if len(answer) != len("$1\r\nV\r\n") {
		t.Fatalf("the first byte of %s is %q", state, answer)
	}
	return answer[4:5]
}

func TestTamperedDataCausesAnErrorAndNoGrant(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	state := "pawl:{job}s"
	version := func() string { return versionOf(t, server, state) }
	for name, tamper := range map[string]func(){
		"another type":    func() { server.Do("DEL", state); server.Do("LPUSH", state, "x") },
		"empty":           func() { server.Do("SET", state, "") },
		"text":            func() { server.Do("SET", state, "held by me until tomorrow, please") },
		"cut off":         func() { server.Do("SET", state, version()+"\x01"+strings.Repeat("\x00", 24)) },
		"a newer version": func() { server.Do("SETRANGE", state, "0", string([]byte{version()[0] + 1})) },
		"longer":          func() { server.Do("SET", state, version()+strings.Repeat("\x00", 30)) },
		"an absurd fence": func() { server.Do("SETRANGE", state, "2", "\x7f\xf8\x00\x00\x00\x00\x00\x00") },
		"details of another type": func() {
			server.Do("DEL", "pawl:{job}l")
			server.Do("SET", "pawl:{job}l", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do("FLUSHALL")
			c := reader("job")
			gets(t, d, c)
			tamper()
			_, err := d.Acquire(ctx, mutex("job"))
			unavailable(t, err, true, "")
			if renewed(d, c) == nil {
				t.Error("Renew returned no error")
			}
			if _, err := d.Inspect(ctx, "job"); err == nil {
				t.Error("Inspect returned no error")
			}
			gets(t, d, mutex("another name"))
		})
	}
}

// Scripts do not decode an owner. A client that does not know a field of the holder's
// owner gets an error and no grant, but the holder can renew and release its lease.
func TestAnOwnerWithAFieldOfALaterVersionCausesAnErrorAndNoGrant(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	c, state := mutex("job"), "pawl:{job}s"
	gets(t, d, c)
	owner := locktable.AppendOwner(nil, c.Owner)
	size, err := strconv.Atoi(strings.Trim(server.Do("STRLEN", state), ":\r\n"))
	noError(t, err)
	offset := size - 8 - len(owner) // the TTL comes last
	server.Do("SETRANGE", state, strconv.Itoa(offset), string([]byte{owner[0] | 0x20}))
	_, err = d.Acquire(ctx, mutex("job"))
	unavailable(t, err, true, "")
	if _, err := d.Inspect(ctx, "job"); err == nil {
		t.Error("Inspect returned no error")
	}
	renews(t, d, c)
	releases(t, d, c)
	gets(t, d, mutex("job"))
}

func TestLeasesAreRenewedAndReleasedWhenMemoryIsFull(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	for i, kind := range []func(string) driver.Claim{mutex, reader} {
		name := fmt.Sprint("job", i)
		c, waiter := kind(name), queued(name)
		gets(t, d, c)
		withoutWaiter := kind(name + " alone")
		gets(t, d, withoutWaiter)
		_, _ = d.Acquire(ctx, waiter)
		server.Do("CONFIG", "SET", "maxmemory", "1")
		for _, c := range []driver.Claim{c, withoutWaiter} {
			renews(t, d, c)
			releases(t, d, c)
		}
		renews(t, d, waiter) // the server has granted it
		server.Do("CONFIG", "SET", "maxmemory", "0")
		releases(t, d, waiter)
	}
}

func TestErrorsHaveAHintAndNoPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "sesame")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	closedAddr := listener.Addr().String()
	listener.Close()
	for url, hint := range map[string]string{
		"redis://" + server.Addr:                              "password",
		"redis://:hunter2@" + server.Addr:                     "password",
		"redis://joe:hunter2@" + server.Addr:                  "password",
		"rediss://:hunter2@" + server.Addr:                    "TLS",
		"redis://:hunter2@" + closedAddr:                      "is it up",
		"redis://:hunter2@" + closedAddr + "?master_set=main": "is it up",
		"redis://:hunter2@" + server.Addr + "/x":              "",
		"redis://:hunter2@" + server.Addr + "?hunter=2":       "",
	} {
		d, err := asDriver(redislock.Open(ctx, url))
		if err == nil {
			_, err = d.Acquire(ctx, mutex("job"))
			_ = d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v; want a hint about %q", url, err, hint)
		}
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
			t.Errorf("%s: the error has the password: %v", url, err)
		}
	}
	gets(t, openDriver(t, "redis://:sesame@"+server.Addr), mutex("job"))
}

// If Redis is killed, it loses nothing that it has written to its log, even without an
// fsync. Only a crash of the machine loses that.
func TestALeaseOutlivesTheRestartOfAServerThatKeepsItsData(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	servertest.RidesThrough(t, open(t, "redis://"+server.Addr), open(t, "redis://"+server.Addr), func() {
		server.Kill()
		server.Run()
	})
}

// A backup lacks later grants: their holders lose the leases, and the next fences are
// greater.
func TestAServerThatIsRestoredFromABackupHasGreaterFences(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr)
	cycle(t, d, "job")
	server.Do("SAVE")
	other := openDriver(t, "redis://"+server.Addr)
	servertest.Forgets(t, d, other, func() { server.Kill(); server.Run() }) // with the saved data
}

func renewed(d driver.Driver, c driver.Claim) error {
	answers, err := d.Renew(ctx, []driver.LeaseRef{lease(c)})
	return errors.Join(append(answers, err)...)
}
