package redislock_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// The cost of a step for the server depends on the number of commands that its script
// runs. The test fails if a step runs more commands than before.
func TestTheNumberOfCommandsOfEachStep(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr+"?tracking=false")
	step := func(what string, want int, f func()) {
		t.Helper()
		server.Do("CONFIG", "RESETSTAT")
		f()
		if got := commands(server); got != want {
			t.Errorf("%s: %d commands, want %d: %s", what, got, want, server.Do("INFO", "commandstats"))
		}
	}
	list := func() { servertest.Lists(t, d, "listed ") }
	for i := range 50 {
		gets(t, d, mutex(fmt.Sprint("listed ", i)))
	}
	list()                            // loads the script
	step("list fifty names", 3, list) // SCAN TIME MGET
	for _, shared := range []string{"read", "read more"} {
		// loads the scripts, and creates the name
		holder, waiter, next, late := mutex("job"), queued("job"), queued("job"), mutex("job")
		for _, c := range []driver.Claim{holder, reader("job"), holder} {
			gets(t, d, c)
			renews(t, d, c)
			releases(t, d, c)
		}
		step("acquire", 3, func() { gets(t, d, holder) })                      // TIME GET SET
		step("renew", 3, func() { renews(t, d, holder) })                      // TIME GET SET
		step("raise", 4, func() { raises(t, d, holder) })                      // and GETEX
		step("refused", 2, func() { _, _ = d.Acquire(ctx, late) })             // TIME GET
		step("queue, the first", 10, func() { _, _ = d.Acquire(ctx, waiter) }) // and UNLINK, HSET, 2 ZADD, 3 PEXPIRE
		// TIME GET; 2 ZCARD, HLEN; ZRANGE, ZSCORE, HSET, 2 ZADD
		step("queue, behind", 10, func() { _, _ = d.Acquire(ctx, next) })
		// TIME GET; the check of the queue: 2 ZCARD, HLEN; 2 ZSCORE, HGET, ZADD, ZRANK
		step("keep the place", 10, func() { _, _ = d.Acquire(ctx, next) })
		step("renew while others wait", 11, func() { renews(t, d, holder) }) // 2 ZCARD, HLEN, 4 PTTL
		// and ZRANGE, HGET, ZSCORE; HDEL, 2 ZREM; PUBLISH
		step("release to the next", 14, func() { releases(t, d, holder) })
		step("release to the last", 14, func() { releases(t, d, waiter) })   // the same
		step("release without a waiter", 3, func() { releases(t, d, next) }) // TIME GET SET
		step("read", 2, func() { _, _ = d.Inspect(ctx, "job") })             // TIME GET

		one, other := reader(shared), reader(shared)
		step("share, the first", 10, func() { gets(t, d, one) })
		step("share, beside others", 10, func() { gets(t, d, other) })
		step("share, repeated", 9, func() { gets(t, d, other) })
		step("renew a share", 14, func() { renews(t, d, one) })
		step("read shares", 10, func() { _, _ = d.Inspect(ctx, shared) })
		step("release a share", 13, func() { releases(t, d, one) })
		step("release the last share", 13, func() { releases(t, d, other) })

		for _, holders := range []int{1, 50} { // the number of holders must not matter
			crowd := fmt.Sprint(shared, holders)
			for range holders {
				gets(t, d, reader(crowd))
			}
			writer, behind := queued(crowd), queued(crowd)
			behind.Weight = 1
			_, _ = d.Acquire(ctx, writer)
			// TIME GET; 2 ZCARD, HLEN; the head: ZRANGE, HGET, ZSCORE; ZSCORE; the first
			// to end: 2 ZRANGEBYSCORE, HGET, ZSCORE
			step("refused beside shares", 13, func() { _, _ = d.Acquire(ctx, mutex(crowd)) })
			// and HGET, ZSCORE, ZADD, ZRANK
			step("keep the place beside shares", 17, func() { _, _ = d.Acquire(ctx, writer) })
			// instead of the last four: ZRANGE, HSET, 2 ZADD; the time when the head
			// expires: ZRANGE, ZSCORE
			step("a reader behind a writer", 19, func() { _, _ = d.Acquire(ctx, behind) })
		}

		var g driver.Grant
		step("force a free name", 3, func() { g = gets(t, d, forced(shared)) })
		step("break", 12, func() { breaks(t, d, shared, g.Fence) })
		gets(t, d, holder)
		step("force a name that is held", 11, func() { gets(t, d, forced("job")) })
		server.Do("DEL", "pawl:{job}s")
	}

	// The numbers above are for names without a watch. The scripts publish the changes of
	// a watched name, and have no quick case for it.
	watch(t, openDriver(t, "redis://"+server.Addr), "watched")
	c, waiter := mutex("watched"), queued("watched")
	gets(t, d, c)
	releases(t, d, c)
	step("acquire a watched name", 4, func() { gets(t, d, c) })     // TIME GET SET PUBLISH
	step("renew a watched name", 5, func() { renews(t, d, c) })     // TIME GET GETEX PTTL SET
	step("release a watched name", 5, func() { releases(t, d, c) }) // TIME GET GETEX SET PUBLISH
	step("queue for a watched name", 11, func() {                   // one more than "queue, the first"
		gets(t, d, c)
		server.Do("CONFIG", "RESETSTAT")
		_, _ = d.Acquire(ctx, waiter)
	})
}

func TestSeveralNamesAreOneScript(t *testing.T) {
	server := redistest.Start(t)
	d := openDriver(t, "redis://"+server.Addr+"?tracking=false")
	for round := range 2 { // the first loads the script
		var claims []driver.Claim
		for i := range 5 {
			claims = append(claims, mutex("job-"+strconv.Itoa(round)+strconv.Itoa(i)))
		}
		server.Do("CONFIG", "RESETSTAT")
		must(d.AcquireAll(ctx, claims))(t)
		if scripts, all := commands(server, "evalsha"), commands(server); round > 0 && (scripts != 1 || all != 11) {
			t.Errorf("%d scripts with %d commands for five free names, want 1 with TIME and five times GET SET: %s",
				scripts, all, server.Do("INFO", "commandstats"))
		}
		if _, err := d.AcquireAll(ctx, claims[2:4]); err != nil {
			t.Errorf("repeated: %v", err)
		}
	}
}

func forced(name string) driver.Claim {
	c := mutex(name)
	c.Force = true
	return c
}

func breaks(t testing.TB, d driver.LeaseBreaker, name string, fence uint64) {
	t.Helper()
	by := driver.Owner{Client: "0123456789abcdef", Host: "host-1", PID: 4242}
	if err := d.Break(ctx, name, fence, 0, by); err != nil {
		t.Fatalf("Break: %v", err)
	}
}

// commands returns the number of commands that the server has run since the statistics
// were reset: commands with these names, or without names all commands of scripts.
func commands(server *redistest.Server, names ...string) (n int) {
	for line := range strings.SplitSeq(server.Do("INFO", "commandstats"), "\r\n") {
		name, stat, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		switch {
		case !ok:
		case len(names) > 0 && !slices.Contains(names, name):
		case len(names) == 0 && (slices.Contains([]string{"eval", "evalsha", "info", "ping"}, name) || strings.HasPrefix(name, "config") || strings.HasPrefix(name, "subscribe")):
		default:
			calls, _, _ := strings.Cut(stat, ",")
			k, _ := strconv.Atoi(calls)
			n += k
		}
	}
	return n
}
