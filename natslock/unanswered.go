package natslock

import (
	"sync"
	"time"
)

// An unansweredTime is the time for which no server has answered requests of a kind,
// although there is a connection. The server may be cut off from the others of its
// cluster: it is alive, and the connection stays, but it reaches no majority. A leader
// that was cut off answers reads for some time, but no writes, so each kind has an
// unansweredTime of its own.
type unansweredTime struct {
	mu    sync.Mutex
	since time.Time // the first request since the last answer; zero if there is none
	last  time.Time // the last request
	moves int       // to another connection, since the last answer
}

const (
	// reconnectAfter is the time for which requests stay unanswered before the driver
	// tries another server. It doubles each time, because an election takes some seconds,
	// too, and then the server is not at fault. If there is no other server, it is twice
	// as long from the start, and the driver connects to the same server again: that
	// server may have ended the subscription for answers. A server does that when it
	// takes a right away, and it does not report when it gives the right back.
	reconnectAfter = 2 * time.Second
	maxDoublings   = 4
)

// asked notes a request. Requests that got no answer long ago mean nothing now.
func (q *unansweredTime) asked(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() || now.Sub(q.last) > 2*reconnectAfter {
		q.since = now
	}
	q.last = now
}

func (q *unansweredTime) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.since, q.moves = time.Time{}, 0
}

// tooLong reports, once, whether it is time for another connection. others says whether
// there are other servers.
func (q *unansweredTime) tooLong(now time.Time, others bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := reconnectAfter << min(q.moves, maxDoublings)
	if !others {
		limit *= 2
	}
	if q.since.IsZero() || now.Sub(q.since) < limit {
		return false
	}
	q.since = time.Time{}
	q.moves++
	return true
}

// noteAnswer notes the result of a request of a kind. If such requests were unanswered
// for too long, it connects to another server, or to the same one again. It leaves a
// caller's own connection alone.
func (s *store) noteAnswer(q *unansweredTime, err error) {
	switch {
	case err == nil, codeOf(err) != 0 && !isPassing(err) && !isUnderWay(err):
		q.answered()
	case s.own && s.nc.IsConnected() && q.tooLong(time.Now(), len(s.nc.Servers()) > 1):
		_ = s.nc.ForceReconnect() // at worst it is closed
	}
}
