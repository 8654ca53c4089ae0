package natslock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestAWatchOutlivesTheServer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	restart := func() {
		server.Kill()
		time.Sleep(300 * time.Millisecond)
		server.Run()
	}
	servertest.WatchOutlives(t, openDriver(t, "nats://"+server.Addr), openDriver(t, "nats://"+server.Addr), restart, restart)
}

func TestAWatchOutlivesALostLeader(t *testing.T) {
	skipIfShort(t, "whole clusters")
	t.Parallel()
	nodes, leader := cluster(t)
	url := "nats://" + nodes[(leader+1)%3].Addr
	servertest.WatchOutlives(t, openDriver(t, url), openDriver(t, url), nodes[leader].Kill, func() { nodes[leader].Run() })
}

// A bucket that another tool created sends no stamps. A user without the right to
// subscribe to stamps receives none.
func TestChangesAreNotPushedWithoutStamps(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: enabled, users: [
	  { user: noStamps, password: secret, permissions: { subscribe: { allow: [">"], deny: ["_PAWL.>"] } } }
	  { user: all, password: secret } ] } }`)
	noStamps, all := openDriver(t, "nats://noStamps:secret@"+server.Addr), openDriver(t, "nats://all:secret@"+server.Addr)
	servertest.Watch(t, all, "job")
	if !all.Properties().PushesChanges {
		t.Error("PushesChanges is false, but the server sends stamps")
	}
	servertest.Watch(t, noStamps, "job")
	until(t, "the missing right", func() error {
		if noStamps.Properties().PushesChanges {
			return errors.New("PushesChanges is true, but the user may not subscribe")
		}
		return nil
	})

	server = natstest.Start(t, "")
	_, js := connect(t, server)
	kv := jetstream.StreamConfig{Name: "KV_pawl", Subjects: []string{"$KV.pawl.>"}, MaxMsgsPerSubject: 1, AllowDirect: true, AllowMsgTTL: true}
	must(js.CreateStream(ctx, kv))(t)
	other := openDriver(t, "nats://"+server.Addr)
	servertest.Watch(t, other, "job")
	if other.Properties().PushesChanges {
		t.Error("PushesChanges is true, but the bucket sends no stamps")
	}
}
