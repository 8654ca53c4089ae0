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
	restart := c.Members[0].Restart
	servertest.WatchOutlives(t, openDriver(t, c.URL()), openDriver(t, c.URL()), restart, restart)
}

func TestAWatchOutlivesALostMember(t *testing.T) {
	skipIfShort(t, "it starts a cluster")
	t.Parallel()
	c := etcdtest.Start(t, 3)
	lost := leader(t, c, client(t, c.Addrs()...))
	servertest.WatchOutlives(t, openDriver(t, c.URL()), openDriver(t, c.URL()), lost.Kill, lost.Run)
}

// A client without the right to read a name cannot watch it.
func TestAWatchThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	c := startWithUsers(t)
	d := openDriver(t, "etcd://app:hunter2@"+c.Members[0].Addr+"/locks")
	servertest.Watch(t, d, "job")
	if !d.Properties().PushesChanges {
		t.Error("PushesChanges is false, but the user may watch")
	}
	root, err := clientv3.New(clientv3.Config{Endpoints: c.Addrs(), Username: "root", Password: "hunter2", Logger: zap.NewNop()})
	noError(t, err)
	defer root.Close()
	must(root.RoleRevokePermission(brief(t), "app", "locks//", clientv3.GetPrefixRangeEnd("locks//")))(t)
	notified := make(chan struct{}, 1000)
	t.Cleanup(d.Watch("other", func() { notified <- struct{}{} }))
	select {
	case <-notified: // the watch has failed, so the watcher must poll
	case <-time.After(hangTime):
		t.Fatal("no notification that the watch failed")
	}
	if d.Properties().PushesChanges {
		t.Error("PushesChanges is true, but the user may not watch")
	}
}
