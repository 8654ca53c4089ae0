package natslock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/basictest"
	"github.com/pawl-go/pawl/internal/natstest"
	"github.com/pawl-go/pawl/internal/servertest"
	"github.com/pawl-go/pawl/natslock"
)

func must[T any](v T, err error) func(basictest.TB) T { return basictest.Must(v, err) }

var asDriver = servertest.As[*natslock.Driver] // converts the driver of New or Open to its concrete type

// Short names for the helpers of all tests.
var (
	rises       = servertest.Rises
	until       = basictest.Until
	within      = servertest.Within
	isRefused   = servertest.Waits
	renews      = servertest.Renews
	isLost      = servertest.IsLost
	noError     = basictest.NoError
	skipIfShort = basictest.SkipIfShort
	lease       = servertest.Lease
	mutex       = servertest.Mutex
	queued      = servertest.Queued
	gets        = servertest.Gets
	releases    = servertest.Releases
	cycle       = servertest.Cycle
	open        = servertest.Open[*natslock.Driver]

	openDriver = servertest.OpenDriver[*natslock.Driver]
)

// hangTime is the longest time that a test waits for an expected event. Only a hang takes
// so long.
const hangTime = 3 * time.Minute

// buckets counts the buckets that tests use on the shared server.
var buckets atomic.Int64

// ownBucket returns the URL of a bucket that no other test uses, and its server. A test
// that damages the server, or configures it, starts one of its own.
func ownBucket(t testing.TB) (url, bucket string, server *natstest.Server) {
	t.Helper()
	server = natstest.Shared(t)
	bucket = fmt.Sprint("place", buckets.Add(1))
	return "nats://" + server.Addr + "/" + bucket, bucket, server
}

// connect opens a connection for the test. Its timeouts are long, because the machine may
// pause for longer than nats.go waits by default.
func connect(t testing.TB, s *natstest.Server, o ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(s.Addr, append(o, nats.Timeout(hangTime))...)
	noError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(hangTime))
	noError(t, err)
	return nc, js
}

func bucketInfo(t testing.TB, js jetstream.JetStream) *jetstream.StreamInfo {
	t.Helper()
	s, err := js.Stream(within(t, hangTime), "KV_pawl")
	noError(t, err)
	return s.CachedInfo()
}
