package natslock_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/natslock"
)

// A stream that lost data counts on from where it is then: a sequence that one client
// remembers becomes the sequence of another value.

// comesAgain: a client knows by its sequence that a name is free. The bucket loses that
// message, another client holds the name with the same sequence, and the first client
// claims it.
func comesAgain(t *testing.T, a, b *natslock.Driver, js jetstream.JetStream, keep, lose func()) {
	t.Helper()
	sequence := func() uint64 { return bucketInfo(t, js).State.LastSeq }
	for i := range 5 {
		name := fmt.Sprint("n", i)
		cycle(t, a, name)
		keep()
		cycle(t, a, name)
		knows, began := sequence(), time.Now()
		lose()
		holder := mutex(name)
		until(t, "Acquire", func() error {
			_, err := b.Acquire(within(t, 5*time.Second), holder)
			return err
		})
		for sequence() < knows {
			renews(t, b, holder)
		}
		if sequence() > knows { // a write was late, and void
			continue
		}
		t.Logf("it came again after %v", time.Since(began))
		time.Sleep(time.Until(began.Add(natslock.MaxLoadAge)))
		isRefused(t, a, mutex(name))
		renews(t, b, holder)
		return
	}
	t.Error("the sequence never came again")
}

// The node that has the bucket in its memory restarts, and makes it again as it was made.
// The clients are connected to another node, and get no notice.
func TestANodeThatForgetsAndIsNotOurs(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes := natstest.StartCluster(t, 3)
	openDriver(t, "nats://"+nodes[0].Addr+"?replicas=1&storage=memory")
	_, js := connect(t, nodes[0])
	var is int
	must(fmt.Sscanf(bucketInfo(t, js).Cluster.Leader, "n%d", &is))(t)
	other := nodes[(is+1)%3]
	_, js = connect(t, other)
	a, b := openDriver(t, "nats://"+other.Addr), openDriver(t, "nats://"+other.Addr)
	comesAgain(t, a, b, js, func() {}, func() {
		nodes[is].Kill()
		nodes[is].Run()
	})
}

// An operator restores a backup with the tools of NATS, which do this.
func TestABackupThatIsRestored(t *testing.T) {
	nightly(t, "a backup")
	t.Parallel()
	server := natstest.Start(t, "")
	a, b := openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr)
	nc, js := connect(t, server)
	var chunks [][]byte
	var config, state json.RawMessage
	api := func(request string, question, answer any) {
		t.Helper()
		data, err := json.Marshal(question)
		noError(t, err)
		r, err := nc.Request("$JS.API.STREAM."+request+".KV_pawl", data, 10*time.Second)
		if err == nil {
			err = json.Unmarshal(r.Data, answer)
		}
		if err != nil || strings.Contains(string(r.Data), `"error"`) {
			t.Fatalf("%s: %s, %v", request, r.Data, err)
		}
	}
	keep := func() {
		chunks = nil
		inbox := nats.NewInbox()
		sub, err := nc.SubscribeSync(inbox)
		noError(t, err)
		defer sub.Unsubscribe()
		var kept struct{ Config, State json.RawMessage }
		api("SNAPSHOT", map[string]string{"deliver_subject": inbox}, &kept)
		config, state = kept.Config, kept.State
		for {
			m, err := sub.NextMsg(10 * time.Second)
			noError(t, err)
			if len(m.Data) == 0 {
				return
			}
			chunks = append(chunks, m.Data)
			_ = m.Respond(nil) // not every request expects it
		}
	}
	lose := func() {
		noError(t, js.DeleteStream(ctx, "KV_pawl"))
		var to struct {
			DeliverSubject string `json:"deliver_subject"`
		}
		api("RESTORE", map[string]json.RawMessage{"config": config, "state": state}, &to)
		for _, chunk := range append(chunks, nil) {
			if r, err := nc.Request(to.DeliverSubject, chunk, 10*time.Second); err != nil || strings.Contains(string(r.Data), `"error"`) {
				t.Fatalf("%v, %v", r, err)
			}
		}
	}
	comesAgain(t, a, b, js, keep, lose)
}
