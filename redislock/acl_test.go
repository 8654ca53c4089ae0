package redislock_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock"
)

// The rights of a user, as in docs/backends/redis.md. Each constant after the first has
// the rights for one more ability: push, tracking, listing, the doctor, and so on.
const (
	rights = "~pawl:* -@all +hello +ping +eval +evalsha +cluster|slots +time +get +set +getex +unlink +pexpire +pttl " +
		"+hget +hset +hdel +hlen +zadd +zrem +zcard +zrange +zrangebyscore +zrank +zscore"
	rightsToPush   = "&pawl:* +subscribe +unsubscribe +publish"
	rightsToTrack  = "+client|tracking +client|caching"
	rightsToList   = "+scan +mget"
	rightsToDoctor = "+info +config|get"
	rightsToWait   = "+wait"
	rightsToSelect = "+select"
	rightsToRESP2  = "+client|setname"

	// The rights for all abilities of a driver of one server.
	allRights = rights + " " + rightsToPush + " " + rightsToTrack + " " + rightsToList + " " + rightsToDoctor

	// All rights of a user that only reads.
	rightsToRead = "~pawl:* -@all +hello +ping +eval +evalsha +cluster|slots +time +get +mget +hget +hlen +scan +zcard +zrange +zscore"

	// The additional rights in a cluster.
	rightsInCluster = "+asking +ssubscribe +sunsubscribe +spublish +multi +exec +role +cluster|info"

	// The additional rights with Sentinel, and all rights of a user of a Sentinel.
	rightsWithSentinel = "+role"
	rightsOfSentinel   = "&* -@all +hello +ping +subscribe +unsubscribe +sentinel +client|tracking"
)

// setUser gives the user joe these rights, and returns his URL.
func setUser(t *testing.T, server *redistest.Server, rules string) string {
	t.Helper()
	server.Do(append([]string{"ACL", "SETUSER", "joe", "reset", "on", ">sesame"}, strings.Fields(rules)...)...)
	return "redis://joe:sesame@" + server.Addr
}

func TestAUserWithTheDocumentedRightsCanDoEverything(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, setUser(t, server, allRights))
	doesEverything(t, d, func() { awaitTracked(t, server) })
	neverRefused(t, server)
}

func TestTheRightsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/backends/redis.md")
	noError(t, err)
	documented := strings.Fields(strings.NewReplacer(`\|`, "|", "`", " ", ";", " ").Replace(string(text)))
	all := []string{allRights, rightsToWait, rightsToSelect, rightsToRESP2, rightsInCluster, rightsWithSentinel, rightsOfSentinel, rightsToRead}
	for right := range strings.FieldsSeq(strings.Join(all, " ")) {
		if !slices.Contains(documented, right) {
			t.Errorf("docs/backends/redis.md does not name %s", right)
		}
	}
}

func TestAnotherDatabaseAndRESP2NeedOneMoreRight(t *testing.T) {
	t.Parallel()
	for suffix, right := range map[string]string{"/1": rightsToSelect, "?protocol=2": rightsToRESP2} {
		server := redistest.Start(t)
		_, err := redislock.Open(ctx, setUser(t, server, allRights)+suffix)
		unavailable(t, err, true, "ACL")
		server.Do("ACL", "LOG", "RESET")
		doesEverything(t, openDriver(t, setUser(t, server, allRights+" "+right)+suffix), func() {})
		neverRefused(t, server)
	}
}

// Without the right to MGET, List returns the same names, and the driver tries MGET only
// once.
func TestAListWithoutTheRightToMGET(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := openDriver(t, setUser(t, server, strings.Replace(allRights, " +mget", "", 1)))
	for i := range 3 {
		gets(t, d, mutex(fmt.Sprint("job ", i)))
	}
	for range 3 {
		all := servertest.Lists(t, d, "")
		if len(all) != 3 || slices.ContainsFunc(all, func(e driver.Entry) bool { return len(e.Holders) != 1 }) {
			t.Errorf("%+v; want 3 names with a holder", all)
		}
	}
	if n := strings.Count(server.Do("ACL", "LOG"), "mget"); n != 1 {
		t.Errorf("the server's log has %d entries about MGET; want one", n)
	}
	if log := server.Do("ACL", "LOG"); !strings.Contains(log, "\r\ncount\r\n:1\r\n") {
		t.Errorf("MGET was refused more than once: %q", log)
	}
	if found := servertest.FindingsOf(t, d); !found.Have("info rights", "a script for each name") || found.Have("error") {
		t.Errorf("the doctor finds %s", found)
	}
}

// doesEverything uses each ability of a driver. awaitTracking waits until a lease is
// tracked, if the driver has tracking.
func doesEverything(t *testing.T, d *redisscript.Driver, awaitTracking func()) {
	t.Helper()
	signals := listen(t, d)
	for i := range 8 {
		name, kind := fmt.Sprint("job ", i), mutex
		if i%2 == 1 {
			kind = reader
		}
		c, waiter := kind(name), queued(name)
		gets(t, d, c)
		renews(t, d, c)
		raises(t, d, c)
		_, _ = d.Acquire(ctx, waiter)
		if all := servertest.Lists(t, d, name); len(all) != 1 || all[0].Name != name || len(all[0].Waiters) != 1 {
			t.Errorf("%+v", all)
		}
		releases(t, d, c)
		hear(t, signals, driver.SignalGranted, waiter.Token)
		g := gets(t, d, waiter)
		awaitTracking()
		breaks(t, d, name, g.Fence)
		hear(t, signals, driver.SignalLost, waiter.Token)
	}
	several := []driver.Claim{mutex("{several} 1"), reader("{several} 2")}
	if _, err := d.AcquireAll(ctx, several); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	taken, kept := forced("{several} 1"), reader("{several} 2")
	taken.Value = []byte("1")
	gets(t, d, taken)
	late := mutex("{several} 1")
	late.ValueBelow = []byte("0")
	if _, err := d.Acquire(ctx, late); !errors.Is(err, driver.ErrValueNotBelow) {
		t.Error(err)
	}
	gets(t, d, kept)
	withMinHold := lease(kept)
	withMinHold.MinHold = time.Hour
	noError(t, d.Release(ctx, withMinHold))
	waits(t, d, mutex(kept.Name))
	watch(t, d, "{several} 1")
	must(d.Diagnose(ctx))(t)
	if !d.Properties().PushesGrants {
		t.Error("PushesGrants is false")
	}
}

func neverRefused(t *testing.T, nodes ...*redistest.Server) {
	t.Helper()
	for _, node := range nodes {
		if log := node.Do("ACL", "LOG"); log != "*0\r\n" {
			t.Errorf("%s refused: %s", node.Addr, log)
		}
	}
}

func TestWaitersAreGrantedWithoutPush(t *testing.T) {
	server := redistest.Start(t)
	for _, url := range []string{setUser(t, server, rights), "redis://" + server.Addr + "?push=false&tracking=false"} {
		d := openDriver(t, url)
		c, waiter := mutex("job"), queued("job")
		gets(t, d, c)
		if d.Properties().PushesGrants {
			t.Error("PushesGrants is true")
		}
		waits(t, d, waiter)
		releases(t, d, c)
		gets(t, d, waiter)
		releases(t, d, waiter)
	}
}

func TestAUserThatOnlyReads(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	writer := openDriver(t, "redis://"+server.Addr)
	d := openDriver(t, setUser(t, server, rightsToRead)+"?tracking=false")
	hasHolderAndWaiter := func(e driver.Entry, err error) {
		t.Helper()
		if err != nil || len(e.Holders) != 1 || len(e.Waiters) != 1 {
			t.Errorf("%+v, %v; want one holder and one waiter", e, err)
		}
	}
	exclusive, shared := mutex("a"), reader("b")
	for _, c := range []driver.Claim{exclusive, shared} {
		gets(t, writer, c)
		_, _ = writer.Acquire(ctx, queued(c.Name))
		hasHolderAndWaiter(d.Inspect(ctx, c.Name))
	}
	all := servertest.Lists(t, d, "")
	for _, e := range all {
		hasHolderAndWaiter(e, nil)
	}
	if len(all) != 2 {
		t.Errorf("%+v; want 2 names", all)
	}
	neverRefused(t, server)
	_, err := d.Acquire(ctx, mutex("c"))
	unavailable(t, err, true, "ACL")
	unavailable(t, d.Break(ctx, "a", 1, 0, driver.Owner{}), true, "ACL")
	unavailable(t, renewed(d, exclusive), true, "ACL")
	unavailable(t, d.Release(ctx, lease(exclusive)), true, "ACL")
	hasHolderAndWaiter(writer.Inspect(ctx, "a"))
}

func TestAMissingRightIsAnErrorAboutTheACL(t *testing.T) {
	server := redistest.Start(t)
	for _, rules := range []string{
		"~other:* " + strings.TrimPrefix(rights, "~pawl:* "),
		strings.Replace(rights, "+evalsha", "", 1),
		strings.Replace(rights, "+set ", "", 1),
	} {
		d := openDriver(t, setUser(t, server, rules))
		_, err := d.Acquire(ctx, mutex("job"))
		unavailable(t, err, true, "ACL")
		var listed error
		for _, listed = range d.List(ctx, "") {
		}
		if !errors.Is(listed, driver.ErrUnavailable) {
			t.Errorf("List: %v; want ErrUnavailable", listed)
		}
	}
}

// The test runs while a slot moves, and then with names of all nodes, so that each node
// gets every command.
func TestAUserWithTheDocumentedRightsCanDoEverythingInACluster(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	url := ""
	for _, node := range nodes {
		url = setUser(t, node, allRights+" "+rightsInCluster)
	}
	d, other := openDriver(t, url), openDriver(t, url)
	signals := listen(t, other)
	from, to, slot := redistest.PlanMove(nodes, "job")
	for _, kind := range []func(string) driver.Claim{mutex, reader} {
		c, waiter := kind("job"), queued("job")
		c.TTL, waiter.QueueTTL = time.Hour, time.Hour
		gets(t, d, c)
		_, _ = other.Acquire(ctx, waiter)
		owner := from
		redistest.MoveSlot(nodes, slot, from, to, func() {
			renews(t, d, c)
			awaitTracked(t, owner)
			owner = to // for the second call: then the keys have moved, but not the slot
		})
		if all := servertest.Lists(t, d, ""); len(all) != 1 || all[0].Name != "job" || len(all[0].Waiters) != 1 {
			t.Errorf("%+v", all)
		}
		releases(t, d, c)
		breaks(t, d, "job", gets(t, other, waiter).Fence)
		hear(t, signals, driver.SignalLost, waiter.Token)
		from, to = to, from
	}
	for _, f := range servertest.FindingsOf(t, d) {
		if strings.Contains(f, "rights") || strings.Contains(f, "push") || strings.Contains(f, "tracking") || strings.Contains(f, "refused") {
			t.Errorf("the doctor finds: %s", f)
		}
	}
	doesEverything(t, d, func() {})
	neverRefused(t, nodes...)
}

func TestUsersWithTheDocumentedRightsCanDoEverythingWithSentinel(t *testing.T) {
	skipIfShort(t, "fail-overs")
	t.Parallel()
	group := redistest.StartSentinelGroup(t)
	setDownAfter(group.Sentinels, time.Minute)
	for _, s := range []*redistest.Server{group.Master, group.Replica} {
		setUser(t, s, strings.Join([]string{allRights, rightsToWait, rightsWithSentinel}, " "))
	}
	for _, s := range group.Sentinels {
		s.Do(append([]string{"ACL", "SETUSER", "jim", "reset", "on", ">salami"}, strings.Fields(rightsOfSentinel)...)...)
	}
	url := strings.Replace(group.URL(), "redis://", "redis://joe:sesame@", 1)
	d := openDriver(t, url+"&sentinel_username=jim&sentinel_password=salami&wait_replicas=1&wait_timeout=20s")
	signals := listen(t, d)
	c, waiter := mutex("job"), queued("job")
	waiter.QueueTTL = time.Hour
	gets(t, d, c)
	_, _ = d.Acquire(ctx, waiter)
	releases(t, d, c)
	for s := range signals {
		if s.Token == waiter.Token {
			break
		}
	}
	gets(t, d, waiter)
	awaitTracked(t, group.Master)
	if all := servertest.Lists(t, d, ""); len(all) != 1 || all[0].Name != "job" {
		t.Errorf("%+v", all)
	}
	for _, f := range servertest.FindingsOf(t, d) {
		if !strings.Contains(f, "persistence") && !strings.Contains(f, "min-replicas") {
			t.Errorf("the doctor finds: %s", f)
		}
	}
	neverRefused(t, append([]*redistest.Server{group.Master, group.Replica}, group.Sentinels...)...)
}
