package natslock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
)

type bucket struct {
	findLock chan struct{}                          // has a value while a goroutine looks for the bucket
	config   atomic.Pointer[jetstream.StreamConfig] // nil while the bucket is unknown
	readAt   atomic.Pointer[time.Time]              // when the driver last read the configuration

	undeliveredSwaps atomic.Int64 // the number of consecutive swaps that no server received
}

const (
	// maxUndeliveredSwaps is the number of consecutive swaps that no server received,
	// although the bucket seems to exist, after which the driver returns an error.
	maxUndeliveredSwaps = 64

	// configMaxAge is the age at which the driver reads the configuration again. An
	// operator may have set an age limit, and swaps do not show that.
	configMaxAge = time.Minute

	// bucketTries is the number of tries, in some 3 s, before ready accepts one replica.
	// A cluster that has just started may have no leader yet, or too few servers.
	bucketTries = 8
)

// isConfigDue reports whether the caller has to read the configuration again. It returns
// true to only one of several concurrent callers.
func (b *bucket) isConfigDue(now time.Time) bool {
	at := b.readAt.Load()
	return at != nil && now.Sub(*at) >= configMaxAge && b.readAt.CompareAndSwap(at, &now)
}

// forgetConfig makes ready look for the bucket again, because it may have been deleted.
func (b *bucket) forgetConfig() { b.config.Store(nil) }

// ready waits for the connection and, if the bucket is unknown, finds or creates it.
func (s *store) ready(ctx context.Context) error {
	if err := s.awaitConnection(ctx); err != nil || s.bucket.config.Load() != nil {
		return err
	}
	select {
	case s.bucket.findLock <- struct{}{}:
		defer func() { <-s.bucket.findLock }()
	case <-ctx.Done():
		return s.driverError(ctx.Err())
	}
	for try := 0; s.bucket.config.Load() == nil; try++ {
		_, err := s.readConfig(ctx, try >= bucketTries)
		switch {
		case err == nil:
			s.push.probe(ctx, s.nc)
			return nil
		case try >= bucketTries || !isTransient(err) && !lacksServers(err):
			return s.driverError(err)
		}
		if err := backoff.Wait(ctx, backoff.Jitter(backoff.Doubled(20*time.Millisecond, try, time.Second))); err != nil {
			return s.driverError(err)
		}
	}
	return nil
}

// readConfig reads the bucket's configuration, and stores it only if it is fit for locks.
// So each step reads an unfit configuration again: an operator may have corrected it.
func (s *store) readConfig(ctx context.Context, allowOneReplica bool) (*response, error) {
	info, err := retryRead(ctx, s, func(ctx context.Context) (*response, error) { return s.findOrCreate(ctx, allowOneReplica) })
	mustForget := errors.Is(err, jetstream.ErrStreamNotFound)
	if err == nil {
		err = s.checkConfig(&info.Config)
		mustForget = err != nil
	}
	if mustForget {
		s.bucket.forgetConfig()
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s.bucket.readAt.Store(&now)
	s.bucket.config.Store(&info.Config)
	return info, nil
}

// findOrCreate looks for the bucket, and creates it if it is missing. If many clients
// create it at the same time, one client succeeds, and the others find the bucket.
func (s *store) findOrCreate(ctx context.Context, allowOneReplica bool) (*response, error) {
	info, err := s.find(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) && !s.options.MustExist {
		if info, err = s.createBucket(ctx, allowOneReplica); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			if info, err = s.find(ctx); errors.Is(err, jetstream.ErrStreamNotFound) {
				err = errNotCreated
			}
		}
	}
	return info, err
}

// errNotCreated means that the cluster has accepted the creation of the bucket, but has
// not created it: it lacks a majority, and has not detected that yet.
var errNotCreated = errors.New("the cluster accepted the bucket, but has not created it yet")

func (s *store) find(ctx context.Context) (*response, error) { return s.askStream(ctx, "INFO", "") }

// createBucket creates the bucket. By default, a bucket in a cluster gets three replicas.
// With allowOneReplica, it may get one instead, because the cluster has had too few
// servers for some time.
func (s *store) createBucket(ctx context.Context, allowOneReplica bool) (*response, error) {
	replicas := s.options.Replicas
	switch {
	case replicas > 0:
	case s.nc.ConnectedClusterName() == "":
		replicas = 1
	default:
		info, err := s.createStream(ctx, 3)
		if !allowOneReplica || !lacksServers(err) {
			return info, err
		}
		replicas = 1
	}
	return s.createStream(ctx, replicas)
}

// createStream creates a key-value bucket that other tools can read. It adds three
// settings. Messages have TTLs. The server sends the stamp of each stored message to its
// writer, see stampPrefix. The first sequence is the time, so a bucket that is deleted
// and created again has no sequence that a client may still remember.
func (s *store) createStream(ctx context.Context, replicas int) (*response, error) {
	c := jetstream.StreamConfig{
		Name: s.stream, Description: "locks of github.com/pawl-go/pawl", Subjects: []string{s.prefix + ">"},
		MaxMsgsPerSubject: 1, MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxConsumers: -1,
		Replicas: replicas, Discard: jetstream.DiscardNew,
		DenyDelete: true, AllowRollup: true, AllowDirect: true, AllowMsgTTL: true,
		RePublish: &jetstream.RePublish{Source: s.prefix + ">", Destination: s.stampPrefix() + ">", HeadersOnly: true},
		FirstSeq:  uint64(time.Now().UnixMicro()),
	}
	if s.options.Memory {
		c.Storage = jetstream.MemoryStorage
	}
	request, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return s.askStream(ctx, "CREATE", string(request))
}

// editCommand returns the beginning of the command that corrects a bucket.
func (s *store) editCommand() string { return "nats stream edit " + s.stream + " " }

// configErrors returns the settings of a bucket that let the server lose held names, or
// return old values.
func (s *store) configErrors(config *jetstream.StreamConfig) (all engine.Findings) {
	const createAnother = "let natslock create one"
	add := func(bad bool, subject, detail, advice string) {
		all.Add(bad, driver.SeverityError, subject, detail, advice)
	}
	add(config.MaxAge > 0, "max age", fmt.Sprintf("the bucket drops a key %v after its last write, even if the lease lasts longer", config.MaxAge),
		s.editCommand()+"--max-age=0")
	add(config.Discard == jetstream.DiscardOld && (config.MaxBytes > 0 || config.MaxMsgs > 0), "discard policy",
		"a full bucket drops the oldest keys, even if they are held", s.editCommand()+"--discard=new")
	add(config.MaxMsgsPerSubject != 1, "history", "the bucket keeps several values of a key: if it drops the newest, an old one with an ended lease comes back",
		s.editCommand()+"--max-msgs-per-subject=1")
	add(config.DiscardNewPerSubject, "discard policy", "the bucket accepts no second value of a key, so no lease can be released", createAnother)
	add(config.NoAck, "acknowledgements", "the server does not acknowledge writes", s.editCommand()+"--ack")
	add(config.Retention != jetstream.LimitsPolicy, "retention policy", "the bucket drops values that consumers have read, or that have no consumer", createAnother)
	add(config.Mirror != nil || len(config.Sources) > 0, "mirror", "the bucket gets its values from another bucket, so clients cannot compare and replace them", createAnother)
	add(config.SubjectTransform != nil, "subject transform", "the bucket stores a key under another name, where no client finds it", createAnother)
	return all
}

// checkConfig returns an error if the bucket, or the server, is unfit for locks.
func (s *store) checkConfig(config *jetstream.StreamConfig) error {
	for _, e := range s.configErrors(config) {
		return &engine.ConfigError{Problem: e.Subject + ": " + e.Detail, Hint: "mend the bucket, or use another one: " + e.Advice}
	}
	if version := s.nc.ConnectedServerVersion(); isOld(version) {
		return &driver.Error{Backend: s.location(), Err: fmt.Errorf("the server is nats-server %.40q", version), Hint: "run nats-server 2.11 or later", Permanent: true}
	}
	return nil
}

// isOld reports whether a server does not support TTLs of messages.
func isOld(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 2 || major == 2 && minor < 11)
}
