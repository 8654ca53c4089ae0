package natslock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/pause"
)

type bucket struct {
	turn   chan struct{} // of whoever looks for it; holds one
	config atomic.Pointer[jetstream.StreamConfig]
	looked atomic.Pointer[time.Time] // when the configuration was read

	unheard atomic.Int64 // how many swaps in a row nobody got
}

// unheardOf is how many swaps in a row nobody has to get, though the bucket seems to be
// there, before that is an error.
const unheardOf = 64

// forgets reports whether each message can have a TTL of its own.
func (b *bucket) forgets() bool { c := b.config.Load(); return c != nil && c.AllowMsgTTL }

// lookAgain is how old the configuration may become: an operator may set an age limit
// while the driver learns the time from its own swaps.
const lookAgain = time.Minute

// isDue reports to one caller that the configuration has to be read again.
func (b *bucket) isDue(now time.Time) bool {
	looked := b.looked.Load()
	return looked != nil && now.Sub(*looked) >= lookAgain && b.looked.CompareAndSwap(looked, &now)
}

// doubt is for when nobody answers: the bucket may have been deleted.
func (b *bucket) doubt() { b.config.Store(nil) }

// ready makes sure that there is a bucket: it is made if it is missing.
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
		stream, err := again(ctx, s, func(ctx context.Context) (jetstream.Stream, error) { return s.findOrMake(ctx, i >= patient) })
		switch {
		case err == nil:
			if err := s.know(&stream.CachedInfo().Config); err != nil {
				return err
			}
			s.push.probe(ctx, s.nc)
			return nil
		case i >= patient || !isPassing(err) && !isTooFew(err):
			return s.failed(err)
		}
		if err := pause.For(ctx, backoff.Around(backoff.Doubled(20*time.Millisecond, i, time.Second))); err != nil {
			return s.failed(err)
		}
	}
	return nil
}

// know notes how the bucket is configured. One that is not fit is not noted, so that each
// step looks again: somebody may have mended it.
func (s *store) know(is *jetstream.StreamConfig) error {
	if err := s.fit(is); err != nil {
		s.bucket.doubt()
		return err
	}
	now := time.Now()
	s.bucket.looked.Store(&now)
	s.bucket.config.Store(is)
	return nil
}

// patient is how often it is looked again for a bucket, which takes some 3 s in all: a
// cluster that was started a moment ago has no leader yet, or knows of too few servers.
const patient = 8

// connected waits a little for a connection that is being made anew. Nothing is sent
// before: it would be old by then.
func (s *store) connected(ctx context.Context) error {
	for until := time.Now().Add(reconnecting); !s.nc.IsConnected(); {
		if s.closed.Load() {
			return driver.ErrClosed
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			return s.failed(err)
		}
		if time.Now().After(until) {
			return s.failed(s.refusal("", nil))
		}
	}
	return nil
}

const reconnecting = 2 * time.Second

// findOrMake looks for the bucket, and makes it if there is none. Of many that make it at
// the same time one does, and the others find it.
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

// errUnmade is what a cluster without a majority, that does not know it yet, comes to:
// the name is taken, by a bucket that was asked for a moment ago, and there is none.
var errUnmade = errors.New("the bucket was asked for, and is not there yet")

func (s *store) find(ctx context.Context) (jetstream.Stream, error) {
	before := s.nc.LastError()
	stream, err := s.js.Stream(ctx, s.stream)
	return stream, s.denied(err, "STREAM.INFO.", before)
}

// denied is the error of a request to which there was no answer: the right to make it may
// be missing, which is never answered.
func (s *store) denied(err error, request string, before error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		if why := s.refusal(s.api(request+s.stream), before); errors.Is(why, nats.ErrPermissionViolation) {
			return why
		}
	}
	return err
}

// make makes a bucket. small means that it may be one without replicas, although it was
// not asked for: the cluster has too few servers, and had for some time.
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

// config is a key-value bucket as other tools know it, with three things more. Messages
// have TTLs. What is stored is told to whoever stored it, see stamps. And the first
// sequence is the time: a bucket that is deleted and made again has none of the sequences
// of the old one, which some client may still remember.
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
