package natslock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/natstest"
)

// A permission error for one name does not end later slow requests for another name that
// begins with the same letters.
func TestAPermissionErrorConcernsOneSubject(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, `accounts: { A: { jetstream: enabled, users: [
	  { user: half, password: secret, permissions: { publish: { allow: [">"], deny: ["$KV.pawl.no"] } } } ] } }`)
	d := openDriver(t, "nats://half:secret@"+server.Addr)
	known := mutex("n")
	gets(t, d, known)
	for range 2 {
		if _, err := d.Acquire(ctx, mutex("no")); !isPermanent(err) || !errors.Is(err, nats.ErrPermissionViolation) {
			t.Fatalf("%v; want a hint, and ErrPermissionViolation", err)
		}
	}
	server.Pause()
	back := time.AfterFunc(500*time.Millisecond, server.Resume)
	defer back.Stop()
	renews(t, d, known)
}

// A server that revokes the right to receive answers ends the subscription, and does not
// restore it when it grants the right again. So the driver reconnects.
func TestARightThatIsGivenBack(t *testing.T) {
	t.Parallel()
	const all, none = `subscribe: [">"]`, `subscribe: { deny: ["_INBOX.>"] }`
	server := natstest.Start(t, `accounts: { A: { jetstream: enabled, users: [
	  { user: app, password: secret, permissions: { publish: [">"], `+all+` } } ] } }`)
	d := openDriver(t, "nats://app:secret@"+server.Addr)
	c := mutex("n")
	gets(t, d, c)
	server.Reload(all, none)
	for err := error(nil); err == nil; {
		_, err = d.Renew(within(t, 500*time.Millisecond), []driver.LeaseRef{lease(c)})
	}
	server.Reload(none, all)
	until(t, "Renew", func() error {
		answers, err := d.Renew(within(t, 5*time.Second), []driver.LeaseRef{lease(c)})
		return errors.Join(append(answers, err)...)
	})
}
