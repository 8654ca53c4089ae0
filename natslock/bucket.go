package natslock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
)

type bucket struct {
	turn   chan struct{} // has an element while a goroutine looks for the bucket
	config atomic.Pointer[jetstream.StreamConfig]
	looked atomic.Pointer[time.Time] // when the driver last read the configuration

	undeliveredSwaps atomic.Int64 // the number of consecutive swaps that no server received
}

// maxUndeliveredSwaps is the number of swaps in a row that may reach no server, although
// the bucket seems to be there, before the driver returns an error.
const maxUndeliveredSwaps = 64

// forgets reports whether each message can have a TTL of its own.
func (b *bucket) forgets() bool { c := b.config.Load(); return c != nil && c.AllowMsgTTL }

// configMaxAge is the age at which the driver reads the configuration again. The driver's
// own swaps do not show that an operator has set an age limit.
const configMaxAge = time.Minute

// isDue reports, to one caller only, whether the configuration has to be read again.
func (b *bucket) isDue(now time.Time) bool {
	looked := b.looked.Load()
	return looked != nil && now.Sub(*looked) >= configMaxAge && b.looked.CompareAndSwap(looked, &now)
}

// forgetConfig makes ready look for the bucket again, which may have been deleted.
func (b *bucket) forgetConfig() { b.config.Store(nil) }

// ready makes sure that there is a bucket, and makes it if it is missing.
func (s *store) ready(ctx context.Context) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	if s.bucket.config.Load() != nil {
		return nil
	}
	select {
	case s.bucket.turn <- struct{}{}:
		defer func() { <-s.bucket.turn }()
	case <-ctx.Done():
		return s.failed(ctx.Err())
	}
	for i := 0; s.bucket.config.Load() == nil; i++ {
		stream, err := retryRead(ctx, s, func(ctx context.Context) (jetstream.Stream, error) { return s.findOrMake(ctx, i >= bucketTries) })
		switch {
		case err == nil:
			if err := s.storeConfig(&stream.CachedInfo().Config); err != nil {
				return err
			}
			s.push.probe(ctx, s.nc)
			return nil
		case i >= bucketTries || !isPassing(err) && !isTooFew(err):
			return s.failed(err)
		}
		if err := backoff.Wait(ctx, backoff.Around(backoff.Doubled(20*time.Millisecond, i, time.Second))); err != nil {
			return s.failed(err)
		}
	}
	return nil
}

// storeConfig stores the configuration of the bucket, unless it is unfit. Each step reads
// an unfit configuration again, because an operator may have mended it.
func (s *store) storeConfig(is *jetstream.StreamConfig) error {
	if err := s.fit(is); err != nil {
		s.bucket.forgetConfig()
		return err
	}
	now := time.Now()
	s.bucket.looked.Store(&now)
	s.bucket.config.Store(is)
	return nil
}

// bucketTries is the number of times that ready looks for the bucket, in some 3 s. A
// cluster that was started a moment ago has no leader yet, or knows too few servers.
const bucketTries = 8

// connected waits up to reconnectTimeout for a connection that is being replaced. The
// caller then sends its request, because an earlier request would arrive too late.
func (s *store) connected(ctx context.Context) error {
	for until := time.Now().Add(reconnectTimeout); !s.nc.IsConnected(); {
		if s.closed.Load() {
			return driver.ErrClosed
		}
		if err := backoff.Wait(ctx, 10*time.Millisecond); err != nil {
			return s.failed(err)
		}
		if time.Now().After(until) {
			return s.failed(s.unconnected())
		}
	}
	return nil
}

const reconnectTimeout = 2 * time.Second

// findOrMake looks for the bucket, and makes it if it is missing. If many clients make it
// at once, one client succeeds, and the others find the bucket.
func (s *store) findOrMake(ctx context.Context, small bool) (jetstream.Stream, error) {
	stream, err := s.find(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) && !s.o.MustExist {
		if stream, err = s.make(ctx, small); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			if stream, err = s.find(ctx); errors.Is(err, jetstream.ErrStreamNotFound) {
				err = errUnmade
			}
		}
	}
	return stream, err
}

// errUnmade comes from a cluster that lacks a majority and has not noticed this yet. The
// name of the bucket is taken, because a client asked for the bucket a moment ago, but
// the bucket does not exist.
var errUnmade = errors.New("the bucket was asked for, and is not there yet")

func (s *store) find(ctx context.Context) (jetstream.Stream, error) {
	before := s.nc.LastError()
	stream, err := s.js.Stream(ctx, s.stream)
	return stream, s.denied(err, "STREAM.INFO.", before)
}

// denied returns the error of a request. If no answer came, the user may lack the right
// to make the request. Then denied returns the server's error about that right.
func (s *store) denied(err error, request string, before error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		if why := s.refusal(s.api(request+s.stream), before); why != nil {
			return why
		}
	}
	return err
}

// make makes a bucket. If the options have no number of replicas, the bucket gets three
// in a cluster. If small is true, it may get one instead, because the cluster has had too
// few servers for some time.
func (s *store) make(ctx context.Context, small bool) (jetstream.Stream, error) {
	replicas := s.o.Replicas
	switch {
	case replicas > 0:
	case s.nc.ConnectedClusterName() == "":
		replicas = 1
	default:
		stream, err := s.create(ctx, 3)
		if !small || !isTooFew(err) {
			return stream, err
		}
		replicas = 1
	}
	return s.create(ctx, replicas)
}

func (s *store) create(ctx context.Context, replicas int) (jetstream.Stream, error) {
	before := s.nc.LastError()
	stream, err := s.js.CreateStream(ctx, s.config(replicas))
	return stream, s.denied(err, "STREAM.CREATE.", before)
}

// config returns the configuration of a key-value bucket as other tools know it, with
// three additions. Messages have TTLs. The server sends the stamp of each stored message
// to its writer, see stamps. The first sequence is the time, so a bucket that is deleted
// and made again has no sequence that a client may still remember.
func (s *store) config(replicas int) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: s.stream, Description: "locks of github.com/pawl-go/pawl", Subjects: []string{s.prefix + ">"},
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		Replicas: replicas, Discard: jetstream.DiscardNew,
		DenyDelete: true, AllowRollup: true, AllowDirect: true, AllowMsgTTL: true,
		RePublish: &jetstream.RePublish{Source: s.prefix + ">", Destination: s.stampPrefix() + ">", HeadersOnly: true},
		FirstSeq:  uint64(time.Now().UnixMicro()),
	}
	if s.o.Memory {
		c.Storage = jetstream.MemoryStorage
	}
	return c
}
