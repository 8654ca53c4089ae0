package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/etcdlock"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// A server that is killed and started again loses no data. Holders and waiters notice
// only that requests fail meanwhile.
func TestTheServerRestartedWhileHeldAndWaitedFor(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	servertest.RidesThrough(t, openDriver(t, c.URL()), openDriver(t, c.URL()), c.Members[0].Restart)
}

// The leader of three members may be killed or paused.
func TestOneOfThreeMembersIsLost(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 3)
	admin := client(t, c.Addrs()...)
	for what, fail := range map[string]func(m *etcdtest.Member) (heal func()){
		"killed":  func(m *etcdtest.Member) func() { m.Kill(); return m.Run },
		"stopped": func(m *etcdtest.Member) func() { m.Pause(); return m.Resume },
	} {
		t.Run(what, func(t *testing.T) {
			var heal func()
			servertest.RidesThrough(t, openDriver(t, c.URL()+"/"+what), openDriver(t, c.URL()+"/"+what), func() { heal = fail(leader(t, c, admin)) })
			heal()
		})
	}
}

// leader returns the member that leads.
func leader(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) *etcdtest.Member {
	t.Helper()
	for began := time.Now(); time.Since(began) < hangTime; {
		for _, m := range c.Members {
			s, err := admin.Status(brief(t), m.Addr)
			if err == nil && s.Leader == s.Header.GetMemberId() {
				return m
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("no member is the leader")
	return nil
}

// A member without a majority grants no lease, and its error names the cause.
func TestAMemberWithoutAMajority(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 3)
	d := openDriver(t, "etcd://"+c.Members[0].Addr)
	gets(t, d, mutex("before"))
	c.Members[1].Kill()
	c.Members[2].Kill()
	time.Sleep(1500 * time.Millisecond) // until the member notices
	_, err := d.Acquire(brief(t), mutex("job"))
	if err == nil {
		t.Fatal("one of three members granted a lease")
	}
	e, ok := errors.AsType[*driver.Error](err)
	if hasHint := ok && strings.Contains(e.Hint, "majority"); !hasHint && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want a hint, or DeadlineExceeded", err)
	}
	c.Members[1].Run()
	gets(t, d, mutex("job"))
}

// No client notices compaction and defragmentation.
func TestCompactedAndDefragmentedWhileHeldAndWaitedFor(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	servertest.RidesThrough(t, openDriver(t, c.URL()), openDriver(t, c.URL()), func() { compactAndDefragment(t, c, client(t, c.Addrs()...)) })
}

// The watches for signals and changes begin again if their revisions were compacted while
// their connection was gone.
func TestCompactedWhileDisconnected(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	p := startProxy(t, c)
	a, b := openDriver(t, c.URL()), openDriver(t, "etcd://"+p.Addr)
	holder, waiter := mutex("job"), queued("job")
	gets(t, a, holder)
	refused(t, b, waiter)
	awaitChange := servertest.Watch(t, b, "job")
	p.Freeze()
	for range 20 { // changes that the watches miss
		keeps(t, a, holder)
		time.Sleep(30 * time.Millisecond)
	}
	compact(t, client(t, c.Addrs()...))
	p.Heal()
	awaitChange("the missed changes")
	refused(t, b, waiter)
	signals := signalsFor(t, b, waiter.Token)
	releases(t, a, holder)
	awaitGrantSignal(t, signals)
	awaitChange("a release")
}

// A learner refuses requests for locks. If voting members are named too, the client uses
// them; otherwise the error names the cause.
func TestALearnerAmongTheEndpoints(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	admin := client(t, c.Addrs()...)
	learner := c.Join(func(peer string) {
		must(admin.MemberAddAsLearner(brief(t), []string{peer}))(t)
	})
	for range 4 { // a client asks a random endpoint first
		d := openDriver(t, "etcd://"+learner.Addr+","+c.Members[0].Addr)
		cycle(t, d, "job")
	}
	_, err := etcdlock.Open(brief(t), "etcd://"+learner.Addr)
	servertest.WantDriverError(t, err, false, "learner")
}

// When the quota is used up, as on a full disk, no client can lock or renew. The error
// says how to mend that, and afterwards all clients work again.
func TestTheQuotaIsUsedUp(t *testing.T) {
	skipIfShort(t, "it fills a database")
	t.Parallel()
	c := etcdtest.Start(t, 1, "--quota-backend-bytes", "200000")
	d := openDriver(t, c.URL())
	holder := mutex("job")
	first := gets(t, d, holder)
	admin := client(t, c.Addrs()...)
	fillQuota(t, admin)
	longer := lease(holder) // otherwise Renew might extend nothing, and so write nothing
	longer.TTL *= 2
	for what, do := range map[string]func() error{
		"Acquire": func() error { _, err := d.Acquire(brief(t), mutex("other")); return err },
		"Renew":   func() error { _, err := d.Renew(brief(t), []driver.LeaseRef{longer}); return err },
		"Release": func() error { return d.Release(brief(t), lease(holder)) },
	} {
		t.Log(what)
		servertest.WantDriverError(t, do(), false, "alarm disarm")
	}
	if found := diagnose(t, d); !strings.Contains(found, "error alarm") {
		t.Errorf("the doctor finds %q", found)
	}
	must(admin.Delete(brief(t), "fill", clientv3.WithPrefix()))(t)
	compactAndDefragment(t, c, admin)
	must(admin.AlarmDisarm(brief(t), &clientv3.AlarmMember{}))(t)
	releases(t, d, holder)
	rises(t, first.Fence, gets(t, d, mutex("job")).Fence)
}

// fillQuota writes until the quota is used up.
func fillQuota(t *testing.T, admin *clientv3.Client) {
	t.Helper()
	for range 400 {
		if _, err := admin.Put(brief(t), "fill", strings.Repeat("x", 10000)); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the quota is not used up")
}

// Names with different prefixes never share a key.
func TestPrefixesDoNotMeet(t *testing.T) {
	t.Parallel()
	url, _, c := ownPrefix(t)
	var all []*etcdlock.Driver
	for _, prefix := range []string{"", "/a", "/a/entry", "/a/entry/x", "/b"} {
		d := openDriver(t, url+prefix)
		all = append(all, d)
		gets(t, d, mutex("x"))
		gets(t, d, mutex("/entry/x"))
		refused(t, d, mutex("x"))
	}
	for _, d := range all {
		if held := servertest.Lists(t, d, ""); len(held) != 2 {
			t.Errorf("%d names are held; want 2", len(held))
		}
	}
	for _, prefix := range []string{"a//b", "a/", "/"} {
		if _, err := etcdlock.New(client(t, c.Addrs()...), &etcdlock.Options{Prefix: prefix}); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("prefix %q: %v; want ErrInvalid", prefix, err)
		}
	}
}

// No client creates a deleted clock again while there are locks.
func TestTheClockIsDeleted(t *testing.T) {
	t.Parallel()
	url, prefix, c := ownPrefix(t)
	d := openDriver(t, url)
	gets(t, d, mutex("job"))
	admin := client(t, c.Addrs()...)
	must(admin.Delete(brief(t), prefix+"//clock"))(t)
	_, err := d.Acquire(brief(t), mutex("other"))
	if err == nil {
		_, err = d.Acquire(brief(t), mutex("another"))
	}
	if err == nil {
		t.Error("granted without a clock")
	}
	_, err = etcdlock.Open(brief(t), url)
	servertest.WantDriverError(t, err, true, "stop all that use these locks")
	must(admin.Delete(brief(t), prefix+"//", clientv3.WithPrefix()))(t)
	gets(t, openDriver(t, url), mutex("job"))
}

func TestConnectionsThatWentSilentAreReplaced(t *testing.T) {
	skipIfShort(t, "it waits for pings of a silent connection")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	p := startProxy(t, c)
	servertest.CheckSilentConnections(t, p, openDriver(t, "etcd://"+p.Addr), openDriver(t, c.URL()))
}

func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	_ = open(t, c.URL()).Close() // because a member that is killed before its first answer may never answer
	c.Members[0].Kill()
	servertest.OpensWhenServerStarts(t, c.URL()+"?dial_timeout=1s", c.Members[0].Run)
}
