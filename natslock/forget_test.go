package natslock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/natstest"
)

// kept returns the time for which the server keeps the message of a name.
func kept(t *testing.T, js jetstream.JetStream, name string) time.Duration {
	t.Helper()
	s, err := js.Stream(ctx, "KV_pawl")
	noError(t, err)
	m, err := s.GetLastMsgForSubject(ctx, "$KV.pawl."+name)
	noError(t, err)
	seconds, err := strconv.Atoi(m.Header.Get(jetstream.MsgTTLHeader))
	noError(t, err)
	return time.Duration(seconds) * time.Second
}

// The server itself forgets a name, the retention after its last lease. A void release
// would leave the lease as it is, so its message is kept as long.
func TestANameIsForgotten(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	d := openDriver(t, "nats://"+server.Addr+"?retention=1m")
	_, js := connect(t, server)
	c := mutex("n")
	c.TTL = time.Hour
	for range 2 {
		gets(t, d, c)
		if got := kept(t, js, "n"); got < time.Hour+time.Minute || got > time.Hour+2*time.Minute {
			t.Errorf("while it is held, it is kept for %v", got)
		}
		releases(t, d, c)
		if got := kept(t, js, "n"); got < time.Minute || got > time.Hour+2*time.Minute {
			t.Errorf("when it was released, it is kept for %v", got)
		}
	}
}

// A client that wrongly believes that a lease is long over writes in vain, and does not
// shorten the life of the message that it did not replace.
func TestALeaseIsNotForgottenBecauseOfAWrongIdeaOfTheTime(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	a, b := openDriver(t, "nats://"+server.Addr+"?retention=1m"), openDriver(t, "nats://"+server.Addr+"?retention=1m")
	_, js := connect(t, server)
	c := mutex("n")
	c.TTL = time.Hour
	gets(t, a, c)
	for range 3 { // the message that it finds then may be void itself
		b.Believes(2 * time.Hour)
		isRefused(t, b, mutex("n"))
		if got := kept(t, js, "n"); got < time.Hour {
			t.Errorf("it is kept for %v, and held for an hour", got)
		}
	}
	renews(t, a, c)
}
