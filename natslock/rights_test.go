package natslock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/internal/natstest"
)

// An error about a right that was missing says nothing of requests that are slow after
// it, for names that begin with the same letters.
func TestARightThatWasMissingIsNoExcuse(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: enabled, users: [
	  { user: half, password: secret, permissions: { publish: { allow: [">"], deny: ["$KV.pawl.no"] } } } ] } }`)
	d := start(t, "nats://half:secret@"+server.Addr)
	known := mutex("n")
	gets(t, d, known)
	for range 2 {
		if _, err := d.Acquire(ctx, mutex("no")); !isPermanent(err) || !errors.Is(err, nats.ErrPermissionViolation) {
			t.Fatalf("%v; want it to say that a right is missing", err)
		}
	}
	resume := server.Pause()
	back := time.AfterFunc(500*time.Millisecond, resume)
	defer back.Stop()
	renews(t, d, known)
}
