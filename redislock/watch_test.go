package redislock_test

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/pawl-go/pawl/internal/redisscript"
	"github.com/pawl-go/pawl/internal/redistest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/redislock"
)

// channels returns the channels of watched names that have subscribers.
func channels(server *redistest.Server) string {
	var found []string
	for line := range strings.FieldsSeq(server.Do("PUBSUB", "CHANNELS", "*}w") + " " + server.Do("PUBSUB", "SHARDCHANNELS", "*}w")) {
		if strings.HasSuffix(line, "w") {
			found = append(found, line)
		}
	}
	return strings.Join(found, " ")
}

func TestAStoppedWatchLeavesItsChannel(t *testing.T) {
	server := redistest.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	noError(t, err)
	defer client.Close()
	shared, err := asDriver(redislock.New(client, nil))
	noError(t, err)
	defer shared.Close()
	for how, d := range map[string]*redisscript.Driver{
		"RESP3": openDriver(t, "redis://"+server.Addr), "RESP2": openDriver(t, "redis://"+server.Addr+"?protocol=2"), "shared": shared,
	} {
		t.Run(how, func(t *testing.T) {
			stop := d.Watch("job", func() {})
			awaitChange := watch(t, d, "book")
			becomes(t, "each name has a channel", func() bool { return len(strings.Fields(channels(server))) == 2 })
			stop()
			becomes(t, "the channel of job is left", func() bool { return !strings.Contains(channels(server), "job") })
			cycle(t, d, "book")
			awaitChange("a change of the other name")
		})
		becomes(t, "all channels are left", func() bool { return channels(server) == "" })
	}
}

func TestAWatchOutlivesItsConnection(t *testing.T) {
	for _, parameters := range []string{"", "?protocol=2"} {
		server := redistest.Start(t)
		d, other := openDriver(t, "redis://"+server.Addr+parameters), openDriver(t, "redis://"+server.Addr)
		awaitChange := watch(t, d, "job")
		for range 3 {
			server.Do("CLIENT", "KILL", "TYPE", "pubsub")
			awaitChange("a possible change meanwhile")
			cycle(t, other, "job")
			awaitChange("a change afterwards")
		}
		if !d.Properties().PushesChanges {
			t.Error("PushesChanges is false")
		}
	}
}

func TestAWatchOutlivesTheServer(t *testing.T) {
	server := redistest.Start(t)
	restart := func() { server.Kill(); server.Run() } // without data
	servertest.WatchOutlives(t, openDriver(t, "redis://"+server.Addr), openDriver(t, "redis://"+server.Addr), restart, restart)
}

func TestChangesAreNotPushedWithoutTheRight(t *testing.T) {
	server := redistest.Start(t)
	for _, missing := range []string{"+subscribe", "+publish", "&pawl:*"} {
		url := setUser(t, server, rights+" "+strings.Replace(rightsToPush, missing, "", 1))
		d := openDriver(t, url)
		// The driver notifies the watcher once, so that it begins to poll.
		awaitChange := watch(t, d, "without "+missing)
		if d.Properties().PushesChanges {
			t.Errorf("without %s PushesChanges is true", missing)
		}
		if missing != "+subscribe" {
			continue
		}
		setUser(t, server, rights+" "+rightsToPush)
		awaitChange("a possible change before the subscription")
		if !d.Properties().PushesChanges {
			t.Error("with all rights PushesChanges is false")
		}
	}
	withoutPush := openDriver(t, "redis://"+server.Addr+"?push=false")
	withoutPush.Watch("job", func() {})()
	if withoutPush.Properties().PushesChanges {
		t.Error("without push PushesChanges is true")
	}
}
