package natslock

import (
	"sync"
	"time"
)

// An unansweredTime is the time for which no server has answered requests of a kind,
// although there is a connection. A server that is cut off from the others of its cluster
// is alive, and keeps the connection, but reaches no majority. A leader that was cut off
// answers reads for some time, but no writes, so each kind has its own unansweredTime.
type unansweredTime struct {
	mu    sync.Mutex
	since time.Time // the time of the first request since the last answer; zero if there is none
	last  time.Time // the time of the last request
	moves int       // the number of changes of the connection since the last answer
}

const (
	// reconnectAfter is the time for which requests stay unanswered before the driver
	// tries another server. The time doubles with each try, because an election also
	// takes some seconds, without a fault of the server. If there is no other server, the
	// time is twice as long from the start, and the driver connects to the same server
	// again. That server may have ended the subscription for answers. A server does that
	// when it takes a right away, and does not report when it gives the right back.
	reconnectAfter = 2 * time.Second
	maxDoublings   = 4
)

// asked notes a request. It forgets requests that got no answer long ago.
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
// for too long, it connects to another server, or to the same server again. It leaves a
// caller's own connection alone.
func (s *store) noteAnswer(q *unansweredTime, err error) {
	switch {
	case err == nil, codeOf(err) != 0 && !isPassing(err) && !isUnderWay(err):
		q.answered()
	case s.own && s.nc.IsConnected() && q.tooLong(time.Now(), len(s.nc.Servers()) > 1):
		_ = s.nc.ForceReconnect() // at worst the connection is closed
	}
}
