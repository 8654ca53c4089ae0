package mongolock

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// Requests have the concerns on which the guarantees depend, even if the URL has others.
// A majority acknowledges a write; a single server acknowledges it from its journal. A
// read of a name sees every acknowledged write.
func TestReadAndWriteConcerns(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	var mu sync.Mutex
	var sent []bson.Raw
	client, err := mongo.Connect(options.Client().ApplyURI(server.databaseURL(server.addr, "") + "&w=1&journal=false&readPreference=nearest&readConcernLevel=available").SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, slices.Clone(e.Command))
		},
	}))
	noError(t, err)
	t.Cleanup(func() { disconnect(client) })
	for name, test := range map[string]struct {
		g      greeting
		writes string
		reads  string
	}{
		"alone":    {greeting{}, `{"w": "majority","j": true}`, "local"},
		"replicas": {greeting{SetName: "rs"}, `{"w": "majority"}`, "linearizable"},
		"sharded":  {greeting{Msg: "isdbgrid"}, `{"w": "majority"}`, "linearizable"},
	} {
		d, err := asDriver(New(client.Database(newDatabase()), &Options{NoPush: true}))
		noError(t, err)
		d.store.srv.Store(d.store.serverOf(&test.g))
		mu.Lock()
		sent = nil
		mu.Unlock()
		// The server's answer does not matter here.
		now := locktable.At(time.Now())
		e := &locktable.Entry{}
		_, _ = d.store.Load(within(t, 5*time.Second), []string{"job"})
		_, _ = d.store.Swap(within(t, 5*time.Second), []swap.Swap{{Name: "job", Value: e.Append(nil), Entry: e, Window: swap.Window{From: now, To: now}}})
		_ = d.Close()
		mu.Lock()
		for command, want := range map[string]struct{ field, value string }{"find": {"readConcern.level", test.reads}, "findAndModify": {"writeConcern", test.writes}} {
			i := slices.IndexFunc(sent, func(c bson.Raw) bool { _, err := c.LookupErr(command); return err == nil })
			if i < 0 {
				t.Errorf("%s: the driver sent no %s", name, command)
				continue
			}
			got := sent[i].Lookup("writeConcern").String()
			if command == "find" {
				got = sent[i].Lookup("readConcern", "level").StringValue()
			}
			if got != want.value {
				t.Errorf("%s: %s has %s %s, want %s", name, command, want.field, got, want.value)
			}
		}
		mu.Unlock()
	}
}
