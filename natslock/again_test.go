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

// After a stream has lost data, it repeats sequences. So a later value can get a sequence
// that a client knows from a lost value.

// checkRepeatedSequence makes the bucket lose the message from which client a knows that
// a name is free. Client b then holds the name with the same sequence, and the claim of
// client a must be refused.
func checkRepeatedSequence(t *testing.T, a, b *natslock.Driver, js jetstream.JetStream, backUp, lose func()) {
	t.Helper()
	sequence := func() uint64 { return bucketInfo(t, js).State.LastSeq }
	for i := range 5 {
		name := fmt.Sprint("n", i)
		cycle(t, a, name)
		backUp()
		cycle(t, a, name)
		known, began := sequence(), time.Now()
		lose()
		holder := mutex(name)
		until(t, "Acquire", func() error {
			_, err := b.Acquire(within(t, 5*time.Second), holder)
			return err
		})
		for sequence() < known {
			renews(t, b, holder)
		}
		if sequence() > known { // a late write, which is void, has taken the sequence
			continue
		}
		t.Logf("the sequence was repeated after %v", time.Since(began))
		time.Sleep(time.Until(began.Add(natslock.MaxLoadAge)))
		isRefused(t, a, mutex(name))
		renews(t, b, holder)
		return
	}
	t.Error("the sequence was never repeated")
}

// The node that has the bucket in memory restarts, and creates it again with the same
// first sequence. The clients are connected to another node, and do not notice.
func TestAnotherNodeThatLosesItsData(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes := natstest.StartCluster(t, 3)
	openDriver(t, "nats://"+nodes[0].Addr+"?replicas=1&storage=memory")
	_, js := connect(t, nodes[0])
	var leader int
	must(fmt.Sscanf(bucketInfo(t, js).Cluster.Leader, "n%d", &leader))(t)
	other := nodes[(leader+1)%3]
	_, js = connect(t, other)
	a, b := openDriver(t, "nats://"+other.Addr), openDriver(t, "nats://"+other.Addr)
	checkRepeatedSequence(t, a, b, js, func() {}, nodes[leader].Restart)
}

// An operator restores a backup. The NATS tools send the same requests.
func TestABackupThatIsRestored(t *testing.T) {
	skipIfShort(t, "a backup")
	t.Parallel()
	server := natstest.Start(t, "")
	a, b := openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr)
	nc, js := connect(t, server)
	var chunks [][]byte
	var config, state json.RawMessage
	api := func(request string, body, answer any) {
		t.Helper()
		data, err := json.Marshal(body)
		noError(t, err)
		r, err := nc.Request("$JS.API.STREAM."+request+".KV_pawl", data, 10*time.Second)
		noError(t, err)
		if err := json.Unmarshal(r.Data, answer); err != nil || strings.Contains(string(r.Data), `"error"`) {
			t.Fatalf("%s: %s, %v", request, r.Data, err)
		}
	}
	backUp := func() {
		chunks = nil
		inbox := nats.NewInbox()
		sub, err := nc.SubscribeSync(inbox)
		noError(t, err)
		defer sub.Unsubscribe()
		var answer struct{ Config, State json.RawMessage }
		api("SNAPSHOT", map[string]string{"deliver_subject": inbox}, &answer)
		config, state = answer.Config, answer.State
		for {
			m, err := sub.NextMsg(10 * time.Second)
			noError(t, err)
			if len(m.Data) == 0 {
				return
			}
			chunks = append(chunks, m.Data)
			_ = m.Respond(nil) // not every chunk needs an answer
		}
	}
	restore := func() {
		noError(t, js.DeleteStream(ctx, "KV_pawl"))
		var answer struct {
			DeliverSubject string `json:"deliver_subject"`
		}
		api("RESTORE", map[string]json.RawMessage{"config": config, "state": state}, &answer)
		for _, chunk := range append(chunks, nil) {
			if r, err := nc.Request(answer.DeliverSubject, chunk, 10*time.Second); err != nil || strings.Contains(string(r.Data), `"error"`) {
				t.Fatalf("%v, %v", r, err)
			}
		}
	}
	checkRepeatedSequence(t, a, b, js, backUp, restore)
}
