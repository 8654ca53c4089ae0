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

// watch watches a name, and waits until it has begun.
func watch(t *testing.T, d *redisscript.Driver, name string) (told <-chan struct{}, stop func()) {
	t.Helper()
	all := make(chan struct{}, 1000)
	stop = d.Watch(name, func() { all <- struct{}{} })
	t.Cleanup(stop)
	tells(t, all, "the beginning")
	return all, stop
}

// tells waits for a call, and takes the calls that came with it.
func tells(t *testing.T, told <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-told:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s was not told", what)
	}
	drain(told)
}

func drain(told <-chan struct{}) {
	time.Sleep(20 * time.Millisecond)
	for len(told) > 0 {
		<-told
	}
}

// changes makes a change, as another client.
func changes(t *testing.T, d driver.Driver, name string) {
	t.Helper()
	c := mutex(name)
	gets(t, d, c)
	releases(t, d, c)
}

// channels are the channels for changes that have subscribers.
func channels(server *redistest.Server) string {
	var found []string
	for line := range strings.FieldsSeq(server.Do("PUBSUB", "CHANNELS", "*}w") + " " + server.Do("PUBSUB", "SHARDCHANNELS", "*}w")) {
		if strings.HasSuffix(line, "w") {
			found = append(found, line)
		}
	}
	return strings.Join(found, " ")
}

func TestAWatchThatIsStoppedIsFreed(t *testing.T) {
	server := redistest.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	noError(t, err)
	defer client.Close()
	shared, err := concrete(redislock.New(client, nil))
	noError(t, err)
	defer shared.Close()
	for how, d := range map[string]*redisscript.Driver{
		"RESP3": openDriver(t, "redis://"+server.Addr), "RESP2": openDriver(t, "redis://"+server.Addr+"?protocol=2"), "shared": shared,
	} {
		_, stop1 := watch(t, d, "job")
		told2, stop2 := watch(t, d, "book")
		if got := len(strings.Fields(channels(server))); got != 2 {
			t.Errorf("%s: %d channels, want one for each name: %s", how, got, channels(server))
		}
		stop1()
		becomes(t, "job is left", func() bool { return !strings.Contains(channels(server), "job") })
		changes(t, d, "book")
		tells(t, told2, "a change of the other name")
		stop2()
		becomes(t, "all is left", func() bool { return channels(server) == "" })
	}
}

func TestAWatchOutlivesItsConnection(t *testing.T) {
	for _, parameters := range []string{"", "?protocol=2"} {
		server := redistest.Start(t)
		d, other := openDriver(t, "redis://"+server.Addr+parameters), openDriver(t, "redis://"+server.Addr)
		told, _ := watch(t, d, "job")
		for range 3 {
			server.Do("CLIENT", "KILL", "TYPE", "pubsub")
			tells(t, told, "what may have happened meanwhile")
			changes(t, other, "job")
			tells(t, told, "a change afterwards")
		}
		if !d.Properties().PushesChanges {
			t.Error("PushesChanges is false")
		}
	}
}

func TestAWatchOutlivesTheServer(t *testing.T) {
	server := redistest.Start(t)
	d, other := openDriver(t, "redis://"+server.Addr), openDriver(t, "redis://"+server.Addr)
	told, _ := watch(t, d, "job")
	server.Kill()
	tells(t, told, "that nothing is heard any more")
	becomes(t, "PushesChanges is false", func() bool { return !d.Properties().PushesChanges })
	server.Run() // without data
	becomes(t, "PushesChanges is true", func() bool { return d.Properties().PushesChanges })
	tells(t, told, "that it is heard again")
	becomes(t, "the other client is connected", func() bool { _, err := other.Inspect(ctx, "job"); return err == nil })
	changes(t, other, "job")
	tells(t, told, "a change")
}

// In a cluster the messages about a name go to no other node.
func TestAWatchInAClusterIsOfASlot(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	d := openDriver(t, "redis://"+nodes[0].Addr)
	for node, name := range onEach(nodes) {
		told, _ := watch(t, d, name)
		if got := node.Do("PUBSUB", "SHARDCHANNELS"); !strings.Contains(got, "pawl:{"+name+"}w") {
			t.Errorf("the node of %q has the channels %s", name, got)
		}
		changes(t, d, name)
		tells(t, told, "a change")
	}
}

func TestChangesAreNotToldWithoutTheRightTo(t *testing.T) {
	server := redistest.Start(t)
	for _, missing := range []string{"+subscribe", "+publish", "&pawl:*"} {
		url := user(t, server, rights+" "+strings.Replace(rightsToPush, missing, "", 1))
		d := openDriver(t, url)
		told := make(chan struct{}, 1000)
		t.Cleanup(d.Watch("without "+missing, func() { told <- struct{}{} }))
		tells(t, told, "that nothing is heard") // so that the watcher begins to poll
		if d.Properties().PushesChanges {
			t.Errorf("without %s PushesChanges is true", missing)
		}
		if missing != "+subscribe" {
			continue
		}
		user(t, server, rights+" "+rightsToPush)
		tells(t, told, "that something is heard")
		if !d.Properties().PushesChanges {
			t.Error("with all rights PushesChanges is false")
		}
	}
	quiet := openDriver(t, "redis://"+server.Addr+"?push=false")
	quiet.Watch("job", func() {})()
	if quiet.Properties().PushesChanges {
		t.Error("without push PushesChanges is true")
	}
}
