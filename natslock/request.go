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
	"github.com/pawl-go/pawl/internal/pause"
	"github.com/pawl-go/pawl/locktable"
)

// message is what is stored last for a key.
type message struct {
	data     []byte
	sequence uint64
	stamp    locktable.Instant // rounded down
	kept     time.Duration     // it is forgotten after that and the retention; 0 if it is not
}

// last reads the last message of a key, nil if there is none. It asks the leader: a
// direct read may be answered by a replica that is behind, or by a mirror, which the
// client cannot tell.
func (s *store) last(ctx context.Context, key string) (*message, error) {
	m, err := s.ofLeader(ctx, key)
	if codeOf(err) != jetstream.JSErrCodeStreamNotFound {
		return m, err
	}
	s.bucket.doubt() // it was deleted
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.ofLeader(ctx, key)
}

func (s *store) ofLeader(ctx context.Context, key string) (*message, error) {
	question := `{"last_by_subj":"` + s.prefix + key + `"}` // of harmless characters
	return again(ctx, s, func(ctx context.Context) (*message, error) {
		r, err := s.ask(ctx, &nats.Msg{Subject: s.api("STREAM.MSG.GET." + s.stream), Data: []byte(question)})
		if err != nil {
			return nil, err
		}
		return s.told(r.Data)
	})
}

// from reads the last message of a key, which has this sequence or a later one. A leader
// that is new may not have it yet.
func (s *store) from(ctx context.Context, key string, sequence uint64) (*message, error) {
	for i := range 8 {
		m, err := s.last(ctx, key)
		if err != nil || m != nil && m.sequence >= sequence {
			return m, err
		}
		if err := pause.For(ctx, backoff.Around(backoff.Doubled(time.Millisecond, i, 100*time.Millisecond))); err != nil {
			return nil, s.failed(err)
		}
	}
	return nil, s.failed(errGone)
}

// again repeats a question that changes nothing. While a cluster elects a leader nobody
// answers, and a question that was asked then is never answered; nor is one that was
// asked when the connection was lost, or left. On a slow link that would give up each
// question just before its answer comes, so it waits for twice as long as the last one
// took.
func again[T any](ctx context.Context, s *store, f func(ctx context.Context) (T, error)) (T, error) {
	for i := 0; ; i++ {
		within, cancel := context.WithTimeout(ctx, backoff.Doubled(max(500*time.Millisecond, 2*time.Duration(s.trip.Load())), i, 5*time.Second))
		sent := time.Now()
		s.reads.asked(sent)
		answer, err := f(within)
		if err == nil {
			s.trip.Store(int64(time.Since(sent)))
		}
		s.listenTo(&s.reads, err)
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

func (s *store) told(data []byte) (*message, error) {
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

// keptBy is how long a message with such a header is kept, without the retention.
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
	defer func() { s.listenTo(&s.writes, err) }()
	late := time.AfterFunc(silent, func() { s.listenTo(&s.writes, errSilent) })
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
	stream, err := again(ctx, s, s.find)
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

// lookWhyAfter is how long a request waits until it looks why there is no answer.
const lookWhyAfter = 200 * time.Millisecond

// ask sends a request and waits for the answer. A server that refuses a request says so
// to the connection, and never answers it; and without a connection there is nobody to
// wait for.
func (s *store) ask(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	before := s.nc.LastError()
	look := time.AfterFunc(lookWhyAfter, func() {
		if err := s.refusal(m.Subject, before); err != nil {
			giveUp(err)
		}
	})
	defer look.Stop()
	r, err := s.nc.RequestMsgWithContext(within, m)
	if err == nil {
		return r, nil
	}
	if why := context.Cause(within); why != nil && ctx.Err() == nil {
		err = why
	}
	if errors.Is(err, nats.ErrNoResponders) {
		s.bucket.doubt()
	}
	return nil, s.failed(err)
}

// refusal is why a request for a subject will not be answered, nil if it may be. before
// is the connection's last error from before the request: that one may be about a right
// that was granted since.
func (s *store) refusal(subject string, before error) error {
	last := s.nc.LastError()
	switch {
	case last != before && errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(strings.ToLower(last.Error()), strings.ToLower(`"`+subject+`"`)): //nolint:errorlint // it is the same, or a new one
		return last
	case !s.nc.IsConnected() && last != nil:
		return last
	case !s.nc.IsConnected():
		return nats.ErrDisconnected
	}
	return nil
}
