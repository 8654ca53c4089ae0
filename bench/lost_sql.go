package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/prove/worker"
)

// sessionClaimer uses the session locks of PostgreSQL and MariaDB. PostgreSQL's manual
// says that they are "held until explicitly released or the session ends". So a lock is
// lost with its connection, and a holder notices that only by using the connection.
// sessionClaimer does more than the manuals ask of a user: it pings the connection ten
// times in a TTL, and counts the lock as lost when a ping fails or takes a TTL.
type sessionClaimer struct {
	db         *sql.DB
	ttl        time.Duration
	statements sessionSQL
}

type sessionSQL struct {
	// The arguments of lock are the name and, if hasTimeout is set, the longest wait in
	// seconds.
	lock, try, unlock string
	hasTimeout        bool
}

var (
	postgresSession = sessionSQL{
		lock: "SELECT pg_advisory_lock(hashtext($1)) IS NOT NULL", try: "SELECT pg_try_advisory_lock(hashtext($1))",
		unlock: "SELECT pg_advisory_unlock(hashtext($1))",
	}
	mysqlSession = sessionSQL{
		lock: "SELECT GET_LOCK(?, ?)", try: "SELECT GET_LOCK(?, 0)", unlock: "SELECT RELEASE_LOCK(?)", hasTimeout: true,
	}
)

func openSessionClaimer(driverName string, url func(string) string, s sessionSQL) func(string, time.Duration) (claimer, error) {
	return func(addr string, ttl time.Duration) (claimer, error) {
		db, err := openDB(driverName, url(addr))
		return &sessionClaimer{db, ttl, s}, err
	}
}

func (s *sessionClaimer) claim(ctx context.Context, name string, try bool) (worker.Lease, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	statement, arguments := s.statements.lock, []any{name}
	if try {
		statement = s.statements.try
	} else if until, ok := ctx.Deadline(); ok && s.statements.hasTimeout {
		arguments = append(arguments, math.Ceil(time.Until(until).Seconds()))
	}
	var got sql.NullBool
	err = c.QueryRowContext(ctx, statement, arguments...).Scan(&got)
	switch {
	case err == nil && !got.Valid:
		err = errors.New("the server answered NULL")
	case err == nil && !got.Bool:
		err = errHeld
	}
	if err != nil {
		if !errors.Is(err, errHeld) {
			closeConn(c)
		}
		_ = c.Close()
		return nil, err
	}
	own, stop := context.WithCancel(context.Background())
	l := &sessionLease{lossSignal: newLossSignal(), claimer: s, conn: c, name: name, stop: stop, ended: make(chan struct{})}
	go l.ping(own)
	return l, nil
}

func (s *sessionClaimer) close() { _ = s.db.Close() }

// closeConn makes the pool close a connection, which ends the session on the server.
func closeConn(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
}

type sessionLease struct {
	lossSignal
	claimer *sessionClaimer
	conn    *sql.Conn
	name    string
	stop    context.CancelFunc
	ended   chan struct{}
}

func (l *sessionLease) Fence() uint64 { return 0 }

func (l *sessionLease) ping(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(l.claimer.ttl / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(context.Background(), l.claimer.ttl)
		err := l.conn.PingContext(within)
		cancel()
		if err != nil {
			l.lose()
			return
		}
	}
}

func (l *sessionLease) Release(ctx context.Context) error {
	l.stop()
	<-l.ended
	defer l.conn.Close()
	if l.Err() != nil {
		closeConn(l.conn)
		return errLost
	}
	ctx, cancel := context.WithTimeout(ctx, 2*l.claimer.ttl)
	defer cancel()
	var wasHeld sql.NullBool
	err := l.conn.QueryRowContext(ctx, l.claimer.statements.unlock, l.name).Scan(&wasHeld)
	switch {
	case err != nil:
		closeConn(l.conn)
		return err
	case !wasHeld.Bool:
		return errLost
	}
	return nil
}
