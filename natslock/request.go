package natslock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/locktable"
)

// message is the last stored message of a key.
type message struct {
	data     []byte
	sequence uint64
	stamp    locktable.Instant // the server's time, rounded down
	keepFor  time.Duration     // the server deletes the message at stamp + keepFor + retention; never if keepFor <= 0
}

// readLast reads the last message of a key, and returns nil if there is none. If least is
// not 0, readLast retries until the message has this sequence or a later one, because a
// new leader may not have that message yet.
func (s *store) readLast(ctx context.Context, key string, least uint64) (*message, error) {
	for try := range 8 {
		m, err := s.readFromLeader(ctx, key)
		if codeOf(err) == jetstream.JSErrCodeStreamNotFound { // the bucket was deleted
			s.bucket.forgetConfig()
			if err = s.ready(ctx); err == nil {
				m, err = s.readFromLeader(ctx, key)
			}
		}
		if err != nil || least == 0 || m != nil && m.sequence >= least {
			return m, err
		}
		if err := backoff.Wait(ctx, backoff.Jitter(backoff.Doubled(time.Millisecond, try, 100*time.Millisecond))); err != nil {
			return nil, s.driverError(err)
		}
	}
	return nil, s.driverError(errGone)
}

// readFromLeader reads the last message of a key. It does not use a direct read, because
// an outdated replica or a mirror may answer that.
func (s *store) readFromLeader(ctx context.Context, key string) (*message, error) {
	request := `{"last_by_subj":"` + s.prefix + key + `"}` // the key needs no escaping
	return retryRead(ctx, s, func(ctx context.Context) (*message, error) {
		r, err := s.ask(ctx, s.apiSubject("STREAM.MSG.GET."+s.stream), request)
		switch {
		case codeOf(err) == jetstream.JSErrCodeMessageNotFound:
			return nil, nil
		case err != nil:
			return nil, err
		}
		m := r.Message
		return &message{m.Data, m.Sequence, locktable.At(m.Time), s.keepTime(m.Header)}, nil
	})
}

// retryRead repeats a read until a server answers. A request that was sent while a
// cluster elected a leader, or while the connection was lost, never gets an answer. On a
// slow link a fixed timeout could end each request just before its answer arrives, so the
// timeout is at least twice the time of the last answer, up to 5 s.
func retryRead[T any](ctx context.Context, s *store, f func(ctx context.Context) (T, error)) (T, error) {
	for try := 0; ; try++ {
		within, cancel := context.WithTimeout(ctx, backoff.Doubled(max(500*time.Millisecond, 2*time.Duration(s.roundTrip.Load())), try, 5*time.Second))
		sent := time.Now()
		s.reads.recordRequest(sent)
		answer, err := f(within)
		if err == nil {
			s.roundTrip.Store(int64(time.Since(sent)))
		}
		s.recordResponse(&s.reads, err)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil:
			return answer, err
		case isDisconnected(err) && s.awaitConnection(ctx) == nil, errors.Is(err, context.DeadlineExceeded):
		default:
			return answer, err
		}
	}
}

// keepTime returns the keepFor of a message with this header.
func (s *store) keepTime(header []byte) time.Duration {
	h, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return 0
	}
	ttl, _ := strconv.Atoi(h.Get(jetstream.MsgTTLHeader))
	return time.Duration(ttl)*time.Second - s.options.Retention
}

func (s *store) apiSubject(subject string) string {
	if s.options.Domain != "" {
		return "$JS." + s.options.Domain + ".API." + subject
	}
	return "$JS.API." + subject
}

// A response is JetStream's answer to a request.
type response struct {
	Error *jetstream.APIError `json:"error"`

	*jetstream.StreamInfo      // in the answer of askStream
	*jetstream.AccountInfo     // in the answer to INFO
	Total                  int `json:"total"` // the number of the subjects of which State.Subjects is a page

	Sequence uint64 `json:"seq"` // in an acknowledgement
	Message  struct {
		Sequence uint64    `json:"seq"`
		Data     []byte    `json:"data"`
		Header   []byte    `json:"hdrs"`
		Time     time.Time `json:"time"`
	} `json:"message"` // in the answer to a read
}

// askStream sends a request whose answer describes the bucket's stream.
func (s *store) askStream(ctx context.Context, verb, request string) (*response, error) {
	r, err := s.ask(ctx, s.apiSubject("STREAM."+verb+"."+s.stream), request)
	if err == nil && r.StreamInfo == nil {
		err = s.driverError(jetstream.ErrInvalidJetStreamResponse)
	}
	return r, err
}

// ask sends a request to JetStream, and waits for the answer.
func (s *store) ask(ctx context.Context, subject, request string) (*response, error) {
	return s.send(ctx, &nats.Msg{Subject: subject, Data: []byte(request)})
}

// refusalCheckInterval is the time between two checks whether the server has refused a
// request.
const refusalCheckInterval = 200 * time.Millisecond

// send sends a message and waits for the answer. A server that refuses a request does not
// answer it, but reports an error on the connection, on a busy server only after a while.
// If the connection is missing soon after the request, no answer will arrive. If it is
// lost later, the answer may still arrive on the next connection.
func (s *store) send(ctx context.Context, m *nats.Msg) (*response, error) {
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	before := s.nc.LastError()
	var check func()
	check = func() {
		if err := s.refusal(m.Subject, before); err != nil {
			giveUp(err)
		} else if within.Err() == nil {
			time.AfterFunc(refusalCheckInterval, check)
		}
	}
	defer time.AfterFunc(refusalCheckInterval, func() {
		if err := s.missingConnErr(); err != nil {
			giveUp(err)
		}
		check()
	}).Stop()
	r, err := s.nc.RequestMsgWithContext(within, m)
	if cause := context.Cause(within); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	if errors.Is(err, nats.ErrNoResponders) {
		s.bucket.forgetConfig()
	}
	if err != nil {
		return nil, s.driverError(err)
	}
	var answer response
	if err = json.Unmarshal(r.Data, &answer); err == nil && answer.Error != nil {
		err = answer.Error
	}
	return &answer, s.driverError(err)
}

// refusal returns the error with which the server refuses a request for a subject, or
// nil. before is the connection's last error from before the request. refusal ignores
// that error, because it may concern a right that the user has got since.
func (s *store) refusal(subject string, before error) error {
	last := s.nc.LastError()
	if last != before && errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(strings.ToLower(last.Error()), strings.ToLower(`"`+subject+`"`)) { //nolint:errorlint // last is the same error as before, or a new one
		return last
	}
	return nil
}

// missingConnErr returns the cause of a missing connection, or nil with a connection.
func (s *store) missingConnErr() error {
	if s.nc.IsConnected() {
		return nil
	}
	return cmp.Or(s.nc.LastError(), nats.ErrDisconnected)
}

// awaitConnection waits up to reconnectTimeout while nats.go replaces the connection. A
// request that is sent before the next connection would arrive too late.
func (s *store) awaitConnection(ctx context.Context) error {
	for until := time.Now().Add(reconnectTimeout); !s.nc.IsConnected(); {
		if s.life.Err() != nil {
			return driver.ErrClosed
		}
		if err := backoff.Wait(ctx, 10*time.Millisecond); err != nil {
			return s.driverError(err)
		}
		if time.Now().After(until) {
			return s.driverError(s.missingConnErr())
		}
	}
	return nil
}

const reconnectTimeout = 2 * time.Second

// A responseWatchdog measures the time for which requests of a kind got no answer,
// although there is a connection. A server that is cut off from the others of its cluster
// keeps the connection, but reaches no majority. A leader that was cut off answers reads
// for some time, but no writes, so each kind has its own responseWatchdog.
type responseWatchdog struct {
	mu              sync.Mutex
	unansweredSince time.Time // the time of the first request since the last answer; zero if there is none
	lastRequest     time.Time // the time of the last request
	reconnects      int       // the number of changes of the connection since the last answer
}

const (
	// reconnectAfter is the time without answers after which the driver connects to
	// another server. It doubles with each try, because an election also takes some
	// seconds. If there is no other server, the time is twice as long, and the driver
	// connects to the same server again. That helps if the server has ended the
	// subscription for answers: it does so when the user loses a right, and does not
	// report when the user gets the right back.
	reconnectAfter = 2 * time.Second
	maxDoublings   = 4
)

// recordRequest records a request. It drops old requests without an answer.
func (w *responseWatchdog) recordRequest(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unansweredSince.IsZero() || now.Sub(w.lastRequest) > 2*reconnectAfter {
		w.unansweredSince = now
	}
	w.lastRequest = now
}

// recordResponse records the result of a request of a kind. If such requests were
// unanswered for too long, it reconnects, see reconnectAfter, except on a caller's
// connection.
func (s *store) recordResponse(w *responseWatchdog, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || codeOf(err) != 0 && !isTransient(err) && !isWriteUnderWay(err) {
		w.unansweredSince, w.reconnects = time.Time{}, 0
		return
	}
	if !s.ownsConn || !s.nc.IsConnected() || w.unansweredSince.IsZero() {
		return
	}
	limit := reconnectAfter << min(w.reconnects, maxDoublings)
	if len(s.nc.Servers()) == 1 {
		limit *= 2
	}
	if time.Since(w.unansweredSince) >= limit {
		w.unansweredSince = time.Time{}
		w.reconnects++
		_ = s.nc.ForceReconnect() // an error means that the connection is closed
	}
}
