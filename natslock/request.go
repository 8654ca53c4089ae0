package natslock

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/locktable"
)

// message is the last stored message of a key.
type message struct {
	data     []byte
	sequence uint64
	stamp    locktable.Instant // the server's time, rounded down
	kept     time.Duration     // the server forgets the message after kept and the retention; 0 means never
}

// last reads the last message of a key, and returns nil if there is none. It asks the
// leader, because a replica that is behind, or a mirror, could answer a direct read, and
// the client could not tell.
func (s *store) last(ctx context.Context, key string) (*message, error) {
	m, err := s.ofLeader(ctx, key)
	if codeOf(err) != jetstream.JSErrCodeStreamNotFound {
		return m, err
	}
	s.bucket.forgetConfig() // the bucket was deleted
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.ofLeader(ctx, key)
}

func (s *store) ofLeader(ctx context.Context, key string) (*message, error) {
	question := `{"last_by_subj":"` + s.prefix + key + `"}` // the key needs no escaping
	return retryRead(ctx, s, func(ctx context.Context) (*message, error) {
		r, err := s.ask(ctx, &nats.Msg{Subject: s.api("STREAM.MSG.GET." + s.stream), Data: []byte(question)})
		if err != nil {
			return nil, err
		}
		return s.parseMessage(r.Data)
	})
}

// from reads the last message of a key, which has this sequence or a later one. It tries
// again, because a new leader may not have that message yet.
func (s *store) from(ctx context.Context, key string, sequence uint64) (*message, error) {
	for i := range 8 {
		m, err := s.last(ctx, key)
		if err != nil || m != nil && m.sequence >= sequence {
			return m, err
		}
		if err := backoff.Wait(ctx, backoff.Around(backoff.Doubled(time.Millisecond, i, 100*time.Millisecond))); err != nil {
			return nil, s.failed(err)
		}
	}
	return nil, s.failed(errGone)
}

// retryRead repeats a read until a server answers. A request that was sent while a
// cluster elected a leader, or while the connection was lost, never gets an answer. On a
// slow link a fixed timeout would give up each request just before its answer arrives, so
// the timeout is at least twice the time that the last answer took.
func retryRead[T any](ctx context.Context, s *store, f func(ctx context.Context) (T, error)) (T, error) {
	for i := 0; ; i++ {
		within, cancel := context.WithTimeout(ctx, backoff.Doubled(max(500*time.Millisecond, 2*time.Duration(s.trip.Load())), i, 5*time.Second))
		sent := time.Now()
		s.reads.asked(sent)
		answer, err := f(within)
		if err == nil {
			s.trip.Store(int64(time.Since(sent)))
		}
		s.noteAnswer(&s.reads, err)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil:
			return answer, err
		case isCut(err) && s.connected(ctx) == nil, errors.Is(err, context.DeadlineExceeded):
		default:
			return answer, err
		}
	}
}

func (s *store) parseMessage(data []byte) (*message, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Sequence uint64    `json:"seq"`
			Data     []byte    `json:"data"`
			Header   []byte    `json:"hdrs"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, s.failed(err)
	}
	switch e := answer.Error; {
	case e == nil:
	case e.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil
	default:
		return nil, s.failed(e)
	}
	m := answer.Message
	return &message{m.Data, m.Sequence, locktable.At(m.Time), s.keptBy(m.Header)}, nil
}

// keptBy returns the time for which the server keeps a message with this header, without
// the retention.
func (s *store) keptBy(header []byte) time.Duration {
	h, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return 0
	}
	ttl, _ := strconv.Atoi(h.Get(jetstream.MsgTTLHeader))
	return time.Duration(ttl)*time.Second - s.o.Retention
}

// publish stores a message, and returns its sequence.
func (s *store) publish(ctx context.Context, m *nats.Msg) (sequence uint64, err error) {
	s.writes.asked(time.Now())
	defer func() { s.noteAnswer(&s.writes, err) }()
	late := time.AfterFunc(reconnectAfter, func() { s.noteAnswer(&s.writes, errNoAnswer) })
	defer late.Stop()
	r, err := s.ask(ctx, m)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"`
	}
	switch err := json.Unmarshal(r.Data, &answer); {
	case err != nil:
		return 0, s.failed(err)
	case answer.Error != nil:
		return 0, s.failed(answer.Error)
	case answer.Sequence == 0:
		return 0, s.failed(errors.New("the acknowledgement has no sequence"))
	}
	return answer.Sequence, nil
}

func (s *store) info(ctx context.Context, o ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	stream, err := retryRead(ctx, s, s.find)
	if err != nil {
		return nil, s.failed(err)
	}
	if len(o) == 0 {
		return stream.CachedInfo(), nil
	}
	info, err := stream.Info(ctx, o...)
	return info, s.failed(err)
}

func (s *store) api(subject string) string {
	if s.o.Domain != "" {
		return "$JS." + s.o.Domain + ".API." + subject
	}
	return "$JS.API." + subject
}

// lookWhyEvery is the time between two checks whether the server refuses a request.
const lookWhyEvery = 200 * time.Millisecond

// ask sends a request and waits for the answer. A server that refuses a request reports
// this on the connection, late if it is busy, and never answers the request. If there is
// no connection soon after the request, no answer will come either. If the connection is
// lost later, the answer may still come over the next connection.
func (s *store) ask(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	before := s.nc.LastError()
	var look func()
	look = func() {
		if err := s.refusal(m.Subject, before); err != nil {
			giveUp(err)
		} else if within.Err() == nil {
			time.AfterFunc(lookWhyEvery, look)
		}
	}
	defer time.AfterFunc(lookWhyEvery, func() {
		if err := s.unconnected(); err != nil {
			giveUp(err)
		}
		look()
	}).Stop()
	r, err := s.nc.RequestMsgWithContext(within, m)
	if err == nil {
		return r, nil
	}
	if why := context.Cause(within); why != nil && ctx.Err() == nil {
		err = why
	}
	if errors.Is(err, nats.ErrNoResponders) {
		s.bucket.forgetConfig()
	}
	return nil, s.failed(err)
}

// refusal returns the error by which the server refuses a request for a subject, or nil.
// before is the connection's last error from before the request. That error may be about
// a right that the user has got since.
func (s *store) refusal(subject string, before error) error {
	last := s.nc.LastError()
	if last != before && errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(strings.ToLower(last.Error()), strings.ToLower(`"`+subject+`"`)) { //nolint:errorlint // last is the same error as before, or a new one
		return last
	}
	return nil
}

// unconnected returns the cause of a missing connection, or nil if it is not missing.
func (s *store) unconnected() error {
	if s.nc.IsConnected() {
		return nil
	}
	if last := s.nc.LastError(); last != nil {
		return last
	}
	return nats.ErrDisconnected
}
