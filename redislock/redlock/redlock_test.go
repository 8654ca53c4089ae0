package redlock_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/leaktest"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock/redlock"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	leaktest.SetMaxParallel(48)
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("10") // each has a dozen round trips to each server; redislock runs the full number
	}
	leaktest.Main(m)
}

func threeServers(t *testing.T, args ...string) (servers []*redistest.Server, url string) {
	t.Helper()
	return startServers(t, 3, args...)
}

// startServers starts servers without any replication, and returns a URL with all of
// them.
func startServers(t *testing.T, n int, args ...string) (servers []*redistest.Server, url string) {
	t.Helper()
	var addrs []string
	for range n {
		s := redistest.Start(t, args...)
		servers, addrs = append(servers, s), append(addrs, s.Addr)
	}
	return servers, "redlock://" + strings.Join(addrs, ",")
}

func client(t *testing.T, url string) *pawl.Client {
	t.Helper()
	c, err := pawl.Open(ctx, url, nil)
	noError(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A driver over the caller's clients excludes the drivers that are opened by URL, and
// does not close the clients.
func TestNewUsesTheCallersClients(t *testing.T) {
	t.Parallel()
	servers, url := threeServers(t)
	clients := connect(t, servers, nil)
	for _, wrong := range [][]rueidis.Client{nil, clients[:2], {clients[0], clients[1], clients[0]}, {clients[0], clients[1], nil}} {
		if _, err := redlock.New(wrong...); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%d clients: %v; want ErrInvalid", len(wrong), err)
		}
	}
	d, err := redlock.New(clients...)
	noError(t, err)
	own, err := pawl.New(d, servertest.Patient)
	noError(t, err)
	first := cycle(t, own, "job")
	lease, err := own.Mutex("job").Lock(ctx)
	noError(t, err)
	other := client(t, url)
	if _, err := other.Mutex("job").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
		t.Errorf("%v; want ErrHeld", err)
	}
	noError(t, errors.Join(lease.Release(ctx), own.Close()))
	if next := cycle(t, other, "job"); next <= first {
		t.Errorf("fence %d after %d", next, first)
	}
	for _, c := range clients {
		if err := c.Do(ctx, c.B().Ping().Build()).Error(); err != nil {
			t.Errorf("the caller's client is closed: %v", err)
		}
	}
}

// cycle locks and unlocks, and returns the fence.
func cycle(t *testing.T, c *pawl.Client, name string) uint64 {
	t.Helper()
	soon, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	lease, err := c.Mutex(name).Lock(soon)
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	if err := lease.Release(soon); err != nil {
		t.Fatalf("Release: %v", err)
	}
	return lease.Fence()
}

// risingCycles locks and unlocks n times, and requires that each fence is greater than
// the one before. It returns the last fence.
func risingCycles(t *testing.T, last uint64, c *pawl.Client, name string, n int) uint64 {
	t.Helper()
	for range n {
		next := cycle(t, c, name)
		if next <= last {
			t.Fatalf("fence %d after %d", next, last)
		}
		last = next
	}
	return last
}

func TestAMinorityMayBeDownEvenDuringOpen(t *testing.T) {
	t.Parallel()
	quickest := time.Hour // of the three openings, because the machine may stand still during one
	for down := range 3 {
		servers, url := threeServers(t)
		before := client(t, url)
		last := risingCycles(t, 0, before, "job", 3)
		servers[down].Kill()
		last = risingCycles(t, last, before, "job", 3)
		opened := time.Now()
		after := client(t, url)
		quickest = min(quickest, time.Since(opened))
		last = risingCycles(t, last, after, "job", 3)

		servers[down].Run()
		servers[(down+1)%3].Kill() // now the restarted server has to vote
		last = risingCycles(t, last, after, "job", 3)
		risingCycles(t, last, before, "job", 3)
	}
	if quickest > 2*time.Second {
		t.Errorf("opening took %v", quickest)
	}
}

func TestANodeThatHangsIsNotWaitedFor(t *testing.T) {
	skipIfShort(t, "servers that stand still")
	t.Parallel()
	servers, _ := threeServers(t)
	began := time.Now()
	c, err := pawl.Open(ctx, "redlock://"+servers[0].Addr+","+redistest.SilentAddr(t)+","+servers[1].Addr, nil)
	noError(t, err)
	risingCycles(t, 0, c, "job", 5)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Open, five cycles and Close took %v", took)
	}
}

func TestTwoAddressesOfOneServerAreRefused(t *testing.T) {
	t.Parallel()
	servers, _ := threeServers(t)
	_, err := redlock.Open(ctx, "redlock://"+servers[0].Addr+","+servers[1].Addr+",localhost:"+servers[0].Port)
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), servers[0].Addr+" and localhost:"+servers[0].Port) {
		t.Errorf("%v; want both addresses named", err)
	}
}

func TestWithoutAMajorityNothingIsGrantedOrKept(t *testing.T) {
	t.Parallel()
	servers, url := threeServers(t, "--appendonly", "yes", "--appendfsync", "always")
	c := client(t, url)
	last := cycle(t, c, "job")
	servers[0].Kill()
	servers[1].Kill()
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := c.Mutex("job").TryLock(soon); !errors.Is(err, pawl.ErrUnavailable) {
		t.Fatalf("TryLock: %v; want ErrUnavailable", err)
	}
	if _, err := redlock.Open(soon, url); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "2 of 3 nodes failed, 2 are needed") {
		t.Fatalf("Open: %v; want ErrUnavailable", err)
	}
	servers[0].Run()
	servers[1].Run()
	risingCycles(t, last, c, "job", 3)
	for i, s := range servers { // a free name has one key of 26 bytes; a holder or a waiter adds bytes or keys
		basictest.Eventually(t, "the name is free", func() bool { return s.Do("STRLEN", "pawl:{job}s") == ":26\r\n" })
		if s.Do("DBSIZE") != ":1\r\n" {
			t.Errorf("node %d: keys: %q", i+1, s.Do("KEYS", "*"))
		}
	}
}

func TestFencesRiseWhenANodeLosesItsData(t *testing.T) {
	t.Parallel()
	servers, url := threeServers(t)
	c := client(t, url)
	last := uint64(0)
	for i := range 6 {
		last = risingCycles(t, last, c, "job", 3)
		servers[i%3].Kill()
		servers[i%3].Run() // without its data
		last = risingCycles(t, last, c, "job", 3)
		servers[i%3].Do("FLUSHALL")
	}
}

// An entry that is damaged on a minority is listed. If it is damaged on a majority, List
// returns an error for this name, and continues.
func TestANameIsListedAsLongAsAMajorityCanReadIt(t *testing.T) {
	servers, url := threeServers(t)
	c := client(t, url)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := c.Mutex(name).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for damaged, server := range servers[:2] {
		server.Do("SET", "pawl:{b}s", "held by me until tomorrow, please")
		var listed []string
		for e, err := range c.List(t.Context(), "") {
			if listed = append(listed, e.Name); (err != nil) != (damaged == 1 && e.Name == "b") || err == nil && len(e.Holders) != 1 {
				t.Errorf("damaged on %d servers: %+v, %v", damaged+1, e, err)
			}
		}
		if !slices.Equal(listed, []string{"a", "b", "c"}) {
			t.Errorf("damaged on %d servers: List returns %q", damaged+1, listed)
		}
	}
	for _, server := range servers {
		server.Do("DEL", "pawl:{b}s") // otherwise Close could not release the name
	}
}

func TestTheErrorAboutAWrongURLHasNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redlock://u:sesame@a,b", "redlock://u:sesame@a", "redlock:", "redlock://", "redlock:///0",
		"redlock://u:sesame@a,,b,c", "redlock://u:sesame@a,b,A", "redlock://u:sesame@a,b,c,b:6379",
		"redlock://u:sesame@a,b,c?addr=", "redlock://u:sesame@a,b,c?addr=[]:1", "redlock://u:sesame@a,b,c?addr=d:sesame",
		"redlock://u:sesame@a,b,c:sesame", "redlock://u:sesame@a:1,b,c:sesame",
		"redlock://u:sesame@a,b,c/x", "redlock://u:sesame@a,b,c?nosuch=sesame", "redlock://u:sesame@a,b,c?master_set=sesame",
		"redlock://u:sesame@a,b,c?cluster=true", "redlock://u:sesame@a,b,c?tracking=true",
		"redlock://u:sesame@a,b,c?prefix={}", "redlock://u:sesame@a,b,c?skip_verify=true", "redlock://u:sesame@a,b,c#sesame",
		"redlocks://u:sesame@a,b", "redlock://sesame:1,sesame:1?x@a,b,c", "redlock://a,b,c?sesame@d", "redis://a,b,c",
	} {
		_, err := redlock.Open(ctx, url)
		if _, ok := errors.AsType[*driver.InvalidError](err); !ok || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v; want an InvalidError without a password", url, err)
		}
		if url == "redis://a,b,c" {
			continue
		}
		if _, err := pawl.Open(ctx, url, nil); !errors.Is(err, pawl.ErrInvalid) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v; want ErrInvalid without a password", url, err)
		}
	}
}

// redlock must accept or refuse each new parameter of redislock.
func TestRedlockKnowsEachParameterOfRedislock(t *testing.T) {
	t.Parallel()
	parametersOf := func(url string) []string {
		_, err := driver.Open(ctx, url+"?nosuch=1")
		_, allowed, _ := strings.Cut(err.Error(), "allowed: ")
		return strings.Split(allowed, ", ")
	}
	all, known := parametersOf("redis://a"), parametersOf("redlock://a,b,c")
	known = append(known, "cluster", "master_name", "master_set", "sentinel_password", "sentinel_username", "tracking")
	if slices.Sort(known); !slices.Equal(all, known) {
		t.Errorf("redislock has the parameters\n\t%q, redlock accepts or refuses\n\t%q", all, known)
	}
}

func TestUserPasswordDatabaseAndPrefixAreForAllNodes(t *testing.T) {
	t.Parallel()
	_, url := threeServers(t, "--requirepass", "sesame")
	hosts := strings.TrimPrefix(url, "redlock://")
	c := client(t, "redlock://:sesame@"+hosts+"/3?prefix=mine:")
	lease, err := c.Mutex("job").Lock(ctx)
	noError(t, err)
	if _, err := client(t, "redlock://:sesame@"+hosts+"/3?prefix=mine:").Mutex("job").TryLock(ctx); !errors.Is(err, pawl.ErrHeld) {
		t.Errorf("with the same database and prefix: %v; want ErrHeld", err)
	}
	for _, elsewhere := range []string{"/4?prefix=mine:", "/3", "/3?prefix=yours:"} {
		cycle(t, client(t, "redlock://:sesame@"+hosts+elsewhere), "job")
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	_, err = redlock.Open(ctx, "redlock://:secret@"+hosts)
	if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Permanent || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v; want a permanent error without the password", err)
	}
	addr := strings.Split(hosts, ",")
	client(t, "redlock://:sesame@"+addr[0]+"?addr="+addr[1]+"&addr="+addr[2])
}

func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	servers, url := threeServers(t)
	for _, s := range servers {
		s.Kill()
	}
	servertest.OpensWhenServerStarts(t, url, func() {
		for _, s := range servers[:2] {
			s.Run()
		}
	})
}
