package natslock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/natslock"
)

func client(t testing.TB, url string) *pawl.Client {
	t.Helper()
	return clientOf(t, open(t, url))
}

func clientOf(t testing.TB, d *natslock.Driver) *pawl.Client {
	t.Helper()
	// An election can take longer than the 10 s for which a client repeats a claim.
	c, err := pawl.New(d, &pawl.Options{RetryFor: time.Minute})
	noError(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestAServerThatIsRestarted(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*natstest.Server){"Stopped": (*natstest.Server).Stop, "Killed": (*natstest.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.Start(t, "")
			url := "nats://" + server.Addr
			servertest.RidesThrough(t, open(t, url), open(t, url), func() {
				end(server)
				time.Sleep(300 * time.Millisecond)
				server.Run()
			})
		})
	}
}

// cluster starts three servers with a bucket, and returns its leader.
func cluster(t *testing.T) (nodes []*natstest.Server, leader int) {
	t.Helper()
	nodes = natstest.StartCluster(t, 3)
	return nodes, leaderOf(t, nodes)
}

// leaderOf creates the bucket of a cluster, and waits until it has a leader.
func leaderOf(t *testing.T, nodes []*natstest.Server) (leader int) {
	t.Helper()
	d := open(t, "nats://"+nodes[0].Addr+"?replicas=3")
	defer d.Close()
	nc, js := connect(t, nodes[0])
	defer nc.Close()
	for bucketInfo(t, js).Cluster.Leader == "" {
		time.Sleep(20 * time.Millisecond)
	}
	must(fmt.Sscanf(bucketInfo(t, js).Cluster.Leader, "n%d", &leader))(t)
	return leader
}

func TestALeaderThatIsLost(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	for name, fail := range map[string]func(*natstest.Server){
		"Stopped": (*natstest.Server).Stop,
		"Killed":  (*natstest.Server).Kill,
		"CutOff": func(s *natstest.Server) { // it does not answer, but keeps its connections
			s.Pause()
			time.AfterFunc(15*time.Second, s.Resume)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, leader := cluster(t)
			first, second := nodes[(leader+1)%3].Addr, nodes[(leader+2)%3].Addr
			a, b := open(t, "nats://"+first+","+second), open(t, "nats://"+nodes[leader].Addr+","+second)
			servertest.RidesThrough(t, a, b, func() { fail(nodes[leader]) })
		})
	}
}

// A leader steps down, so its clients must find the next leader.
func TestALeaderThatStepsDown(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes, _ := cluster(t)
	url := "nats://" + nodes[0].Addr
	nc, _ := connect(t, nodes[1])
	servertest.RidesThrough(t, open(t, url), open(t, url), func() {
		if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN.KV_pawl", nil, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestABucketThatIsDeleted(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	a, b := openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr)
	_, js := connect(t, server)
	var before *jetstream.StreamInfo
	servertest.Forgets(t, a, b, func() {
		before = bucketInfo(t, js)
		noError(t, js.DeleteStream(ctx, "KV_pawl"))
	})
	if after := bucketInfo(t, js); after.State.FirstSeq <= before.State.LastSeq {
		t.Errorf("the new bucket begins at %d, and the old one ended at %d", after.State.FirstSeq, before.State.LastSeq)
	}
}

// Another tool deletes the bucket and creates it again, without TTLs of messages. Clients
// use that bucket.
func TestABucketThatAnotherToolCreatesAgain(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	d := openDriver(t, "nats://"+server.Addr)
	first := gets(t, d, mutex("n"))
	_, js := connect(t, server)
	noError(t, js.DeleteStream(ctx, "KV_pawl"))
	must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "pawl"}))(t)
	rises(t, first.Fence, gets(t, d, mutex("n")).Fence)
}

func TestABucketThatIsMadeByManyAtOnce(t *testing.T) {
	skipIfShort(t, "crowds")
	t.Parallel()
	server := natstest.Start(t, "")
	servertest.OpensTwenty(t, "nats://"+server.Addr)
}

func TestAKeyThatAnotherToolDeletes(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	d := openDriver(t, "nats://"+server.Addr)
	_, js := connect(t, server)
	kv, err := js.KeyValue(ctx, "pawl")
	noError(t, err)
	c := mutex("orders/eu.42")
	first := gets(t, d, c)
	keys, err := kv.Keys(ctx)
	if err != nil || !slices.Equal(keys, []string{"orders/eu=2E42"}) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
	noError(t, kv.Delete(ctx, keys[0]))
	isLost(t, d, c)
	rises(t, first.Fence, gets(t, d, mutex(c.Name)).Fence)
}

// Another tool writes a value that natslock cannot read.
func TestAKeyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	url, bucket, server := ownBucket(t)
	_, js := connect(t, server)
	servertest.Damaged(t, openDriver(t, url), openDriver(t, url), "", func(name string) {
		kv, err := js.KeyValue(ctx, bucket)
		noError(t, err)
		must(kv.PutString(ctx, name, "free"))(t)
	})
}

func TestAServerWithoutJetStream(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, natstest.WithoutJetStream)
	_, err := natslock.Open(ctx, "nats://"+server.Addr)
	if e, ok := errors.AsType[*driver.Error](err); !ok || !strings.Contains(e.Hint, "JetStream") {
		t.Errorf("%v; want a hint", err)
	}
}

func TestABucketThatMustExist(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	_, err := natslock.Open(ctx, "nats://"+server.Addr+"?create=false")
	servertest.WantDriverError(t, err, true, "kv add")
	_, js := connect(t, server)
	must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "pawl"}))(t)
	d := openDriver(t, "nats://"+server.Addr+"?create=false")
	cycle(t, d, "n")
}

const users = `
accounts: { A: { jetstream: enabled, users: [
  { user: all, password: secret1 },
  { user: reader, password: secret2, permissions: { publish: ["$JS.API.>"], subscribe: ["_INBOX.>"] } },
  { user: leastRights, password: secret4, permissions: {
    publish: ["$JS.API.STREAM.INFO.KV_pawl", "$JS.API.STREAM.MSG.GET.KV_pawl", "$KV.pawl.>", "_INBOX.>"],
    subscribe: ["_INBOX.>", "_PAWL.pawl.>"] } },
  { user: infoOnly, password: secret5, permissions: { publish: ["$JS.API.STREAM.INFO.>"], subscribe: ["_INBOX.>"] } },
  { user: noPush, password: secret3, permissions: { publish: ["$JS.API.>", "$KV.pawl.>"], subscribe: ["_INBOX.>"] } }
]}, B: { users: [{ user: other, password: secret6 }] } }`

func TestRightsThatAreMissing(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, users)
	all := openDriver(t, "nats://all:secret1@"+server.Addr)
	until(t, "push with all rights", func() error { return checkPush(all, true) })

	reader := openDriver(t, "nats://reader:secret2@"+server.Addr)
	_, err := reader.Acquire(within(t, hangTime), mutex("n"))
	if !isPermanent(err) || !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("%v; want a hint about rights, and ErrPermissionViolation", err)
	}

	leastRights := openDriver(t, "nats://leastRights:secret4@"+server.Addr)
	until(t, "push with the least rights", func() error { return checkPush(leastRights, true) })
	other := mutex("n")
	gets(t, leastRights, other)
	releases(t, leastRights, other)
	for url, want := range map[string]error{
		"nats://leastRights:secret4@" + server.Addr + "/another": nats.ErrPermissionViolation, // may not read it
		"nats://infoOnly:secret5@" + server.Addr + "/another":    nats.ErrPermissionViolation, // may not create it
		"nats://other:secret6@" + server.Addr:                    nil,
		"nats://all:wrong@" + server.Addr:                        nats.ErrAuthorization,
	} {
		until(t, url, func() error { // on a slow machine there may be no answer in time
			if _, err := natslock.Open(within(t, 20*time.Second), url); !isPermanent(err) || want != nil && !errors.Is(err, want) {
				return fmt.Errorf("%w; want %w", err, want)
			}
			return nil
		})
	}

	noPush := openDriver(t, "nats://noPush:secret3@"+server.Addr)
	until(t, "no push without the right to publish to inboxes", func() error { return checkPush(noPush, false) })
	c := mutex("n")
	gets(t, noPush, c)
	isRefused(t, all, mutex("n"))
	releases(t, noPush, c)
}

// isPermanent reports whether err is a permanent error of the backend with a hint.
func isPermanent(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Permanent && e.Hint != ""
}

func TestOpenWaitsForAServerThatStartsLater(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	server.Kill()
	servertest.OpensWhenServerStarts(t, "nats://"+server.Addr, func() { server.Run() })
}
