package natslock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/natstest"
)

// keptFor returns the time for which the server keeps the message of a name.
func keptFor(t *testing.T, js jetstream.JetStream, name string) time.Duration {
	t.Helper()
	s, err := js.Stream(ctx, "KV_pawl")
	noError(t, err)
	m, err := s.GetLastMsgForSubject(ctx, "$KV.pawl."+name)
	noError(t, err)
	seconds, err := strconv.Atoi(m.Header.Get(jetstream.MsgTTLHeader))
	noError(t, err)
	return time.Duration(seconds) * time.Second
}

// The server deletes a name when the retention time after its last lease has passed. A
// release may turn out void and leave the lease, so its message is kept as long.
func TestANameIsForgotten(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	d := openDriver(t, "nats://"+server.Addr+"?retention=1m")
	_, js := connect(t, server)
	c := mutex("n")
	c.TTL = time.Hour
	for range 2 {
		gets(t, d, c)
		if got := keptFor(t, js, "n"); got < time.Hour+time.Minute || got > time.Hour+2*time.Minute {
			t.Errorf("the server keeps a held name for %v", got)
		}
		releases(t, d, c)
		if got := keptFor(t, js, "n"); got < time.Minute || got > time.Hour+2*time.Minute {
			t.Errorf("the server keeps a released name for %v", got)
		}
	}
}

// A client that assumes a wrong time writes as if the lease had expired. That write is
// void, and must not shorten the time for which the server keeps the lease.
func TestAWrongServerTimeShortensNoLease(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, "")
	a, b := openDriver(t, "nats://"+server.Addr+"?retention=1m"), openDriver(t, "nats://"+server.Addr+"?retention=1m")
	_, js := connect(t, server)
	c := mutex("n")
	c.TTL = time.Hour
	gets(t, a, c)
	for range 3 { // from the second time on, the last message may be void
		b.AssumeServerAhead(2 * time.Hour)
		isRefused(t, b, mutex("n"))
		if got := keptFor(t, js, "n"); got < time.Hour {
			t.Errorf("the server keeps the name for %v; want the hour of its lease", got)
		}
	}
	renews(t, a, c)
}
