package postgreslock

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// A store keeps a row for each name. A step is a single statement, see swaps.go. So no
// transaction stays open between two requests.
type store struct {
	*server
	clock       swap.Clock
	notifyPause notifyPause
	sql         *statements
	listener    *listener
	inbox       string              // where other clients send signals for this client
	deliver     func(driver.Signal) // gets the signals for this client

	longWaits chan struct{} // bounds the statements that wait long for a row, because each keeps a connection
	abandoned chan struct{} // bounds the requests whose caller has returned, because each keeps a connection

	lastSlow atomic.Pointer[time.Time] // the time of the last slow request

	tidier  sqlswap.Tidier
	closing context.Context // ends when the store closes
	close   context.CancelFunc
	running engine.Background

	closePool func()
}

func newStore(s *server, closePool func(), deliver func(driver.Signal)) *store {
	_, maxConns := s.usage()
	maxConns = cmp.Or(maxConns, defaultMaxConns)
	t := &store{
		server: s, closePool: closePool, sql: s.options.statements(), inbox: rand.Text()[:16],
		longWaits: make(chan struct{}, max(1, maxConns/4)), abandoned: make(chan struct{}, maxConns*3/4),
	}
	t.deliver = func(signal driver.Signal) {
		t.listener.claims.Signaled(signal)
		deliver(signal)
	}
	t.closing, t.close = context.WithCancel(context.Background())
	t.tidier = sqlswap.Tidier{Life: t.closing, Running: &t.running, Tidy: func(ctx context.Context) { _ = t.request(ctx, t.tidyPage) }}
	t.listener = &listener{store: t, claims: engine.NewClaims()}
	return t
}

// DelaysWrites implements swap.DelayedWriter. A statement checks the clock after it has
// changed the row, but a disk or a standby may delay its commit. Until then, readers do
// not see the change.
func (s *store) DelaysWrites() {}

// Load implements swap.Store.
func (s *store) Load(ctx context.Context, names []string) ([]swap.Stored, error) {
	all := make([]swap.Stored, len(names))
	err := s.do(ctx, func(r *request) error {
		sent := time.Now()
		var i, now int64
		var version sql.NullInt64
		var value []byte
		rows, _ := r.conn.Query(r.ctx, s.sql.load, bytesOf(names)) // ForEachRow returns its error
		_, err := pgx.ForEachRow(rows, []any{&i, &version, &value, &now}, func() error {
			if version.Valid {
				all[i-1] = sqlswap.StoredOf(uint64(version.Int64), value)
			}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func bytesOf(names []string) [][]byte {
	all := make([][]byte, len(names))
	for i, name := range names {
		all[i] = []byte(name)
	}
	return all
}

// Time implements swap.Store.
func (s *store) Time(ctx context.Context) (swap.Window, error) {
	return s.clock.Ask(ctx, func(ctx context.Context) error {
		return s.do(ctx, func(r *request) error {
			var now int64
			sent := time.Now()
			err := r.conn.QueryRow(r.ctx, "SELECT "+clock).Scan(&now)
			if err == nil {
				s.clock.Learn(locktable.Instant(now), sent, time.Now())
			}
			return err
		})
	})
}

// Scan implements swap.Store.
func (s *store) Scan(ctx context.Context, prefix string) iter.Seq2[swap.Named, error] {
	return sqlswap.Scan(prefix, func(from string, n int) ([]swap.Named, error) {
		var page []swap.Named
		err := s.do(ctx, func(r *request) (err error) {
			page, err = s.page(r, from, n)
			return err
		})
		if err != nil {
			return nil, err // the request may still run, and write page
		}
		return page, nil
	}, func(row swap.Named) string { return row.Name })
}

// page reads up to n entries, beginning at the name from. It compares names as bytes,
// because the server refuses invalid text.
func (s *store) page(r *request, from string, n int) (page []swap.Named, err error) {
	var name, value []byte
	var version, now int64
	rows, _ := r.conn.Query(r.ctx, s.sql.page, []byte(textBefore(from)), []byte(from), n) // ForEachRow has the error
	_, err = pgx.ForEachRow(rows, []any{&name, &version, &value, &now}, func() error {
		page = append(page, swap.Named{Name: string(name), Stored: sqlswap.StoredOf(uint64(version), value), Now: locktable.Instant(now)})
		return nil
	})
	return page, err
}

// textBefore returns s up to the first byte that is not valid text for the server: NUL,
// or invalid UTF-8. Each name that sorts after s also sorts after it.
func textBefore(s string) string {
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); r == 0 || r == utf8.RuneError && size == 1 {
			return s[:i]
		}
	}
	return s
}

// do runs request, and converts its error with driverError.
func (s *store) do(ctx context.Context, f func(r *request) error) error {
	return s.driverError(ctx, s.request(ctx, f))
}

// driverError converts an error of the server to a [*driver.Error]. It returns the error
// of the caller's ctx, and the error of a damaged entry, unchanged. If the pool was
// exhausted until ctx ended, the error also has advice.
func (s *store) driverError(ctx context.Context, err error) error {
	_, corrupt := errors.AsType[*locktable.CorruptError](err)
	_, exhausted := errors.AsType[exhaustedError](err)
	switch {
	case err == nil, corrupt:
		return err
	case exhausted && s.closing.Err() == nil:
		return s.statementError(err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	case s.closing.Err() != nil:
		return driver.ErrClosed
	}
	return s.statementError(err)
}

// Properties implements swap.Store.
func (s *store) Properties() driver.Properties {
	pushes := !s.options.NoPush && s.listener.pushes()
	return driver.Properties{
		Backend:       "postgres",
		Location:      s.location(),
		Clock:         driver.ClockServer,
		FenceSurvives: driver.FencesRiseByClock,
		MinTTL:        driver.MinTTL,
		PushesGrants:  pushes,
		PushesChanges: pushes,
	}
}

// Close implements swap.Store. Requests under way end with their ctx. A request whose
// caller has returned does not wait for its answer any more.
func (s *store) Close() error {
	s.close()
	s.listener.running.Wait()
	s.running.Close()
	s.closePool()
	return nil
}
