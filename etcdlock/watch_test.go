package etcdlock_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-go/pawl/internal/etcdtest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAWatchOutlivesTheServer(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	restart := func() {
		c.Members[0].Kill()
		c.Members[0].Run()
	}
	servertest.WatchOutlives(t, openDriver(t, c.URL()), openDriver(t, c.URL()), restart, restart)
}

func TestAMemberThatIsLostIsNoEndOfAWatch(t *testing.T) {
	nightly(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 3)
	lost := leader(t, c, client(t, c.Addrs()...))
	servertest.WatchOutlives(t, openDriver(t, c.URL()), openDriver(t, c.URL()), lost.Kill, lost.Run)
}

// Without the right to read a name, a watch sees nothing of it.
func TestAWatchThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	c := withUsers(t)
	d := openDriver(t, "etcd://app:hunter2@"+c.Members[0].Addr+"/locks")
	servertest.Watch(t, d, "job")
	if !d.Properties().PushesChanges {
		t.Error("PushesChanges is false, and it may watch")
	}
	root, err := clientv3.New(clientv3.Config{Endpoints: c.Addrs(), Username: "root", Password: "hunter2", Logger: zap.NewNop()})
	noError(t, err)
	defer root.Close()
	must(root.RoleRevokePermission(brief(t), "app", "locks//", clientv3.GetPrefixRangeEnd("locks//")))(t)
	told := make(chan struct{}, 1000)
	t.Cleanup(d.Watch("other", func() { told <- struct{}{} }))
	select {
	case <-told: // so that the watcher begins to poll
	case <-time.After(hangTime):
		t.Fatal("nobody was told that nothing is heard")
	}
	if d.Properties().PushesChanges {
		t.Error("PushesChanges is true, and it may not watch")
	}
}
