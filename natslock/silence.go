package natslock

import (
	"sync"
	"time"
)

// A silence is how long nobody has answered requests of a kind, though there is a
// connection. The server may be cut off from the others of its cluster: it is alive, and
// the connection stays, but there is no majority that it could ask. A leader that was cut
// off answers reads for some time, and no write: so each kind has a silence of its own.
type silence struct {
	mu    sync.Mutex
	since time.Time // the first request that was sent since there was an answer; zero if there is none
	last  time.Time // the last one
	moves int       // to another connection, since there was an answer
}

const (
	// silent is how long it lasts until another server is tried; each time it lasts twice
	// as long, for an election takes some seconds, too, and then it is not the server. If
	// there is no other, twice as long from the start: the same server is connected to
	// anew, which may have ended the subscription that answers come to. It does so when
	// a right is taken away, and says nothing when it is given back.
	silent      = 2 * time.Second
	mostDoubled = 4
)

// asked notes a request. What was not answered long ago says nothing of now.
func (q *silence) asked(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() || now.Sub(q.last) > 2*silent {
		q.since = now
	}
	q.last = now
}

func (q *silence) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.since, q.moves = time.Time{}, 0
}

// tooLong reports whether it is time for another connection, once. others says whether
// there are other servers.
func (q *silence) tooLong(now time.Time, others bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	most := silent << min(q.moves, mostDoubled)
	if !others {
		most *= 2
	}
	if q.since.IsZero() || now.Sub(q.since) < most {
		return false
	}
	q.since = time.Time{}
	q.moves++
	return true
}

// listenTo takes what became of a request of a kind: after a silence that is too long
// another server is tried, or the same one anew. A connection of the caller's stays where
// it is.
func (s *store) listenTo(q *silence, err error) {
	switch {
	case err == nil, codeOf(err) != 0 && !isPassing(err) && !isUnderWay(err):
		q.answered()
	case s.own && s.nc.IsConnected() && q.tooLong(time.Now(), len(s.nc.Servers()) > 1):
		_ = s.nc.ForceReconnect() // it is closed, at worst
	}
}
