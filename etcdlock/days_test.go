package etcdlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

// openClient opens a client as users do.
func openClient(t *testing.T, url string) *pawl.Client {
	t.Helper()
	c, err := pawl.Open(t.Context(), url, nil)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Several clients take one name in turn, each through one member or through all, while
// members are stopped, killed, cut off, compacted and defragmented.
func TestOneAtATimeOnBadDays(t *testing.T) {
	skipIfShort(t, "it is a storm on a cluster")
	t.Parallel()
	c := etcdtest.Setup{Members: 3, CanBeCut: true}.Start(t)
	admin := client(t, c.Addrs()...)
	turns := servertest.NewTurns(t, 2*time.Second)
	for i, url := range []string{c.URL(), c.URL(), "etcd://" + c.Addrs()[0], "etcd://" + c.Addrs()[1], "etcd://" + c.Addrs()[2]} {
		turns.Take(fmt.Sprint("client", i), openClient(t, url))
	}
	turns.Until(4)
	for _, day := range []struct {
		name string
		fail func() (heal func())
	}{
		{"the leader stopped", func() func() { m := leader(t, c, admin); m.Pause(); return m.Resume }},
		{"the leader killed", func() func() { m := leader(t, c, admin); m.Kill(); return m.Run }},
		{"a follower killed", func() func() { m := follower(t, c, admin); m.Kill(); return m.Run }},
		{"the leader cut off", func() func() { m := leader(t, c, admin); c.Cut(m, memberID(t, admin, m)); return c.Heal }},
		{"a follower cut off", func() func() { m := follower(t, c, admin); c.Cut(m, memberID(t, admin, m)); return c.Heal }},
		{"compacted and defragmented", func() func() { compactAndDefragment(t, c, admin); return func() {} }},
		{"another leader chosen", func() func() { moveLeader(t, c, admin); return func() {} }},
	} {
		t.Log(day.name)
		heal := day.fail()
		turns.Until(4)
		heal()
		turns.Until(4)
	}
	turns.Check()
}

// A holder whose member is cut off learns that its lease is lost before another client
// gets the name. Meanwhile clients of that member get no lease.
func TestAHolderIsCutOffWithItsMember(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Setup{Members: 3, CanBeCut: true}.Start(t)
	admin := client(t, c.Addrs()...)
	m := leader(t, c, admin)
	others := slices.DeleteFunc(c.Addrs(), func(a string) bool { return a == m.Addr })
	servertest.Partition(t,
		func() *pawl.Client { return openClient(t, "etcd://"+m.Addr) },
		func() *pawl.Client { return openClient(t, c.URL()) },
		func() *pawl.Client { return openClient(t, "etcd://"+others[0]+","+others[1]) },
		func() (heal func()) {
			c.Cut(m, memberID(t, admin, m))
			return c.Heal
		})
}

// follower returns a member that does not lead.
func follower(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) *etcdtest.Member {
	t.Helper()
	lead := leader(t, c, admin)
	for _, m := range c.Members {
		if m != lead {
			return m
		}
	}
	t.Fatal("there is one member only")
	return nil
}

func memberID(t *testing.T, admin *clientv3.Client, m *etcdtest.Member) uint64 {
	t.Helper()
	s, err := admin.Status(brief(t), m.Addr)
	noError(t, err)
	return s.Header.GetMemberId()
}

// compactAndDefragment compacts all revisions but the last, and defragments each member.
func compactAndDefragment(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) {
	t.Helper()
	compact(t, admin)
	for _, m := range c.Members {
		if _, err := admin.Defragment(brief(t), m.Addr); err != nil {
			t.Error(err)
		}
	}
}

func compact(t *testing.T, admin *clientv3.Client) {
	t.Helper()
	now, err := admin.Get(brief(t), "x")
	if err == nil {
		_, err = admin.Compact(brief(t), now.Header.GetRevision(), clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Error(err)
	}
}

// moveLeader makes another member the leader.
func moveLeader(t *testing.T, c *etcdtest.Cluster, admin *clientv3.Client) {
	t.Helper()
	lead, next := leader(t, c, admin), follower(t, c, admin)
	_, err := client(t, lead.Addr).MoveLeader(brief(t), memberID(t, admin, next))
	if err != nil {
		t.Error(err)
	}
}

// Connections break all the time, in the middle of requests and of their answers.
func TestConnectionsThatAreCutInTheMiddle(t *testing.T) {
	skipIfShort(t, "it is a storm")
	t.Parallel()
	c := etcdtest.Start(t, 1)
	p := startProxy(t, c)
	servertest.Storm(t, []driver.Driver{openDriver(t, "etcd://"+p.Addr), openDriver(t, "etcd://"+p.Addr), openDriver(t, "etcd://"+p.Addr)}, p.Heal)
}
