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

func TestALeaderThatGoesIsNoEndOfAWatch(t *testing.T) {
	nightly(t, "whole clusters")
	t.Parallel()
	nodes, leader := cluster(t)
	url := "nats://" + nodes[(leader+1)%3].Addr
	servertest.WatchOutlives(t, openDriver(t, url), openDriver(t, url), nodes[leader].Kill, func() { nodes[leader].Run() })
}

// A bucket that others have made sends no stamps, and a user without the right to
// subscribe to them receives none.
func TestChangesAreNotToldWhereNothingIsSent(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: enabled, users: [
	  { user: deaf, password: secret, permissions: { subscribe: { allow: [">"], deny: ["_PAWL.>"] } } }
	  { user: all, password: secret } ] } }`)
	deaf, all := openDriver(t, "nats://deaf:secret@"+server.Addr), openDriver(t, "nats://all:secret@"+server.Addr)
	servertest.Watch(t, all, "job")
	if !all.Properties().PushesChanges {
		t.Error("PushesChanges is false, and changes are told")
	}
	servertest.Watch(t, deaf, "job")
	until(t, "the right is missing", func() error {
		if deaf.Properties().PushesChanges {
			return errors.New("PushesChanges is true, and the user may not listen")
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
		t.Error("PushesChanges is true, and the bucket sends nothing")
	}
}
