package natslock_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
)

// watches watches a name, and waits until that has begun, or could not.
func watches(t *testing.T, d driver.Watcher, name string) (tells func(what string)) {
	t.Helper()
	told := make(chan struct{}, 1000)
	t.Cleanup(d.Watch(name, func() { told <- struct{}{} }))
	tells = func(what string) {
		t.Helper()
		select {
		case <-told:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s was not told", what)
		}
		for quiet := false; !quiet; { // and what comes with it
			select {
			case <-told:
			case <-time.After(200 * time.Millisecond):
				quiet = true
			}
		}
	}
	tells("the beginning")
	return tells
}

func TestAWatchOutlivesTheServer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	a, b := start(t, "nats://"+server.Addr), start(t, "nats://"+server.Addr)
	tells := watches(t, b, "job")
	for range 2 {
		server.Kill()
		time.Sleep(300 * time.Millisecond)
		server.Run()
		tells("that something may have happened meanwhile")
		c := mutex("job")
		gets(t, a, c)
		tells("a grant")
		releases(t, a, c)
		tells("a release")
	}
	if !b.Properties().PushesChanges {
		t.Error("PushesChanges is false")
	}
}

func TestALeaderThatGoesIsNoEndOfAWatch(t *testing.T) {
	t.Parallel()
	nodes, leader := cluster(t)
	at := nodes[(leader+1)%3].Addr
	a, b := start(t, "nats://"+at), start(t, "nats://"+at)
	tells, c := watches(t, b, "job"), mutex("job")
	nodes[leader].Kill()
	gets(t, a, c)
	tells("a grant")
	nodes[leader].Run()
	releases(t, a, c)
	tells("a release")
}

// A bucket that others have made tells of nothing, and a user without the right to listen
// hears nothing.
func TestChangesAreNotToldWhereNothingIsSent(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: enabled, users: [
	  { user: deaf, password: secret, permissions: { subscribe: { allow: [">"], deny: ["_PAWL.>"] } } }
	  { user: all, password: secret } ] } }`)
	deaf, all := start(t, "nats://deaf:secret@"+server.Addr), start(t, "nats://all:secret@"+server.Addr)
	watches(t, all, "job")
	if !all.Properties().PushesChanges {
		t.Error("PushesChanges is false, and changes are told")
	}
	watches(t, deaf, "job")
	if deaf.Properties().PushesChanges {
		t.Error("PushesChanges is true, and the user may not listen")
	}

	server = natstest.Start(t, "")
	_, js := connect(t, server)
	kv := jetstream.StreamConfig{Name: "KV_pawl", Subjects: []string{"$KV.pawl.>"}, MaxMsgsPerSubject: 1, AllowDirect: true, AllowMsgTTL: true}
	if _, err := js.CreateStream(ctx, kv); err != nil {
		t.Fatal(err)
	}
	other := start(t, "nats://"+server.Addr)
	watches(t, other, "job")
	if other.Properties().PushesChanges {
		t.Error("PushesChanges is true, and the bucket sends nothing")
	}
}
