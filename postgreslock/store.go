package postgreslock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/pause"
	"github.com/pawl-go/pawl/internal/sqltable"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/optimistic"
)

// store is the short way: one statement by itself, which changes a row if it still has
// its version, while the server's clock is within the window. No transaction is open
// while a client does anything else.
//
// PostgreSQL looks at that before it waits for a row that somebody else has locked, and
// not again if that one has not changed it. So the clock is looked at once more when the
// row has changed: a statement that finds itself late then fails, and changes nothing.
type store struct {
	*server
	clock optimistic.Clock
	slow  *sqltable.Table
	hush  hush

	load, swapOne, swapFree, swapNew, swapMany string
}

// inTime is the time, or fails with the state tooLate. What is divided by is 0, and not
// known to be before there is a row.
const (
	inTime  = "CASE WHEN pg_catalog.clock_timestamp() <= $9 THEN " + clock + " ELSE 1 / (version - version) END"
	tooLate = "22012"
)

// soon bounds the wait for a row that somebody else has locked: the other table knows
// who waits for longer. It is a part of each condition, for a setting of the session
// would not come through a pooler.
const soon = " AND pg_catalog.set_config('lock_timeout', '10ms', true) IS NOT NULL"

// inVain reports whether a swap that failed so has changed nothing, and the other table
// shall take the step.
func inVain(err error) bool { return passing(err) || isLocked(err) || sqlState(err) == tooLate }

func newStore(s *server) *store {
	sql := func(statement string) string {
		return strings.NewReplacer("{locks}", s.options.table("locks"), "{now}", clock,
			"{name}", text("$1"), "{n.name}", text("n.name"), "{holders}", text("$5"), "{n.holders}", text("n.holders")).Replace(statement)
	}
	return &store{
		server: s,
		load:   sql("SELECT n.i, l.version, l.entry, {now} FROM pg_catalog.unnest($1::bytea[]) WITH ORDINALITY n (name, i) LEFT JOIN {locks} l ON l.name = {n.name} COLLATE \"C\""),
		swapOne: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND version = $2 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + soon + " RETURNING " + inTime),
		swapFree: sql("UPDATE {locks} SET version = $3, entry = $4, holders = {holders}, fence = $6, until = $7" +
			" WHERE name = {name} AND version = $2 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" +
			" AND pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'" + soon + " RETURNING " + inTime),
		swapNew: sql("INSERT INTO {locks} (name, version, entry, holders, fence, until)" +
			" SELECT {name}, $3::bigint, $4::bytea, {holders}, $6::bigint, $7::timestamptz" +
			" WHERE $2::bigint = 0 AND pg_catalog.clock_timestamp() BETWEEN $8 AND $9" + soon + " ON CONFLICT (name) DO NOTHING RETURNING " + inTime),
		// Rows that others have locked are left out, so nobody waits for them, and two of
		// these cannot wait for each other.
		swapMany: sql("WITH free AS MATERIALIZED (SELECT n.* FROM {locks} l" +
			" JOIN unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[], $7::timestamptz[])" +
			" AS n (name, was, version, entry, holders, fence, until) ON l.name = {n.name} COLLATE \"C\" AND l.version = n.was" +
			" WHERE pg_catalog.clock_timestamp() BETWEEN $8 AND $9 FOR UPDATE OF l SKIP LOCKED)" +
			" UPDATE {locks} l SET version = n.version, entry = n.entry, holders = {n.holders}, fence = n.fence, until = n.until" +
			" FROM free n WHERE l.name = {n.name} COLLATE \"C\" RETURNING n.name, {now}"),
	}
}

// Load implements optimistic.Store.
func (s *store) Load(ctx context.Context, names []string) ([]optimistic.Stored, error) {
	all := make([]optimistic.Stored, len(names))
	err := s.do(ctx, func(c *pgx.Conn) error {
		sent := time.Now()
		rows, err := c.Query(ctx, s.load, bytesOf(names))
		return each(rows, err, func(scan sqltable.Scan) error {
			var i, now int64
			var version sql.NullInt64
			var value []byte
			if err := scan(&i, &version, &value, &now); err != nil {
				return err
			}
			if version.Valid {
				if len(value) == 0 {
					value = []byte{0} // somebody edited it: no entry, and not a free name either
				}
				all[i-1] = optimistic.Stored{Value: value, Version: uint64(version.Int64)}
			}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
	})
	return all, err
}

// bytesOf are names as arguments, see text.
func bytesOf(names []string) [][]byte {
	all := make([][]byte, len(names))
	for i, name := range names {
		all[i] = []byte(name)
	}
	return all
}

// Time implements optimistic.Store.
func (s *store) Time(ctx context.Context) (optimistic.Window, error) {
	return s.clock.Ask(ctx, func(ctx context.Context) error {
		return s.do(ctx, func(c *pgx.Conn) error { return s.ask(ctx, c) })
	})
}

// ask asks the server for its time.
func (s *store) ask(ctx context.Context, c *pgx.Conn) error {
	var now int64
	sent := time.Now()
	if err := c.QueryRow(ctx, "SELECT "+clock).Scan(&now); err != nil {
		return err
	}
	s.clock.Learn(locktable.Instant(now), sent, time.Now())
	return nil
}

// Swap implements optimistic.Store.
func (s *store) Swap(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	s.slow.TidyNowAndThen()
	if len(swaps) > 1 {
		return s.swapTogether(ctx, swaps)
	}
	done := make([]optimistic.Swapped, 1)
	err := s.do(ctx, func(c *pgx.Conn) (err error) {
		done[0], err = s.swap(ctx, c, swaps[0])
		return err
	})
	return done, err
}

func (s *store) swap(ctx context.Context, c *pgx.Conn, w optimistic.Swap) (done optimistic.Swapped, err error) {
	text := s.swapOne
	switch {
	case w.Version == 0:
		text = s.swapNew
	case frees(w.Entry):
		text = s.swapFree
	}
	columns, version := sqltable.ColumnsOf(w.Entry), uint64(sqltable.NewVersion())
	args := []any{
		[]byte(w.Name), int64(w.Version), int64(version), w.Value, plain(columns.Holders), int64(columns.Fence), moment(columns.Until),
		moment(w.Window.From), moment(w.Window.To),
	}
	if len(w.Signals) > 0 && !s.hush.kept() {
		n := len(args)
		var calls strings.Builder
		for _, to := range w.Signals {
			calls.WriteString(", pg_catalog.pg_notify(" + mark(n+1) + ", " + mark(n+2) + ")")
			args, n = append(args, channel(to.Inbox), engine.EncodeSignal(to.Signal)), n+2
		}
		text = "WITH done (now) AS (" + text + ") SELECT now" + calls.String() + " FROM done"
	}
	sent := time.Now()
	if s.past(w.Window, sent) {
		return optimistic.Swapped{Late: true}, nil // it had to wait for a connection
	}
	rows, err := c.Query(ctx, text, args...)
	switch {
	case s.hush.begins(err):
		return s.swap(ctx, c, w)
	case inVain(err):
		return done, nil
	case err != nil:
		return done, err
	}
	defer rows.Close()
	if rows.Next() {
		var now int64
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &now
		if err := rows.Scan(into...); err != nil {
			return done, err
		}
		done.Done, done.Version = true, version
		s.clock.InTime(w.Window)
		s.clock.Learn(locktable.Instant(now), sent, time.Now())
	}
	rows.Close()
	switch err := rows.Err(); {
	case s.hush.begins(err):
		return s.swap(ctx, c, w)
	case inVain(err):
		return optimistic.Swapped{}, nil
	case err != nil || done.Done:
		return done, err
	}
	done.Late = s.past(w.Window, time.Now())
	return done, nil
}

// frees reports whether a swap only gives a name back. The disk is not waited for then:
// if the server crashes before it has written that, the lease that was given back runs
// out, as if its holder had died. The next grant is waited for, and what was before it
// with it.
func frees(e *locktable.Entry) bool {
	return len(e.Holders) == 0 && len(e.Queue) == 0 && e.Closed == 0 && len(e.Broken) == 0 && len(e.Value.Bytes) == 0
}

// past reports whether the server's clock has left a window by now. Then the next one is
// wider.
func (s *store) past(w optimistic.Window, now time.Time) bool {
	is, ok := s.clock.Window(now)
	if ok && is.From <= w.To {
		return false
	}
	s.clock.Late(w)
	return true
}

// swapTogether makes many swaps, and those whose rows are locked again after a moment: a
// row is locked for the length of a step, too, which is no reason to fail.
func (s *store) swapTogether(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	done, err := s.swapAtOnce(ctx, swaps)
	for _, wait := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		var which []int
		var again []optimistic.Swap
		for i, d := range done {
			if errors.Is(d.Err, optimistic.ErrLocked) {
				which, again = append(which, i), append(again, swaps[i])
			}
		}
		if err != nil || len(which) == 0 || pause.For(ctx, wait) != nil {
			break
		}
		var now []optimistic.Swapped
		if now, err = s.swapAtOnce(ctx, again); err != nil {
			return nil, err
		}
		for k, i := range which {
			done[i] = now[k]
		}
	}
	return done, err
}

// swapAtOnce makes many swaps in one statement. None of them has signals: they are
// renewals.
func (s *store) swapAtOnce(ctx context.Context, swaps []optimistic.Swap) ([]optimistic.Swapped, error) {
	n := len(swaps)
	names, was, versions := make([][]byte, n), make([]int64, n), make([]int64, n)
	entries, holders := make([][]byte, n), make([][]byte, n)
	fences, ends := make([]int64, n), make([]*time.Time, n)
	index := make(map[string]int, n)
	from, to := swaps[0].Window.From, swaps[0].Window.To
	for i, w := range swaps {
		columns := sqltable.ColumnsOf(w.Entry)
		names[i], was[i], versions[i] = []byte(w.Name), int64(w.Version), sqltable.NewVersion()
		entries[i], holders[i], fences[i] = w.Value, plain(columns.Holders), int64(columns.Fence)
		if columns.Until != 0 {
			ends[i] = new(time.Time)
			*ends[i] = columns.Until.Time()
		}
		if w.Version == 0 || len(w.Signals) > 0 {
			names[i] = []byte{} // which no row has: its turn comes by itself
		}
		index[w.Name], from, to = i, max(from, w.Window.From), min(to, w.Window.To)
	}
	done := make([]optimistic.Swapped, n)
	err := s.do(ctx, func(c *pgx.Conn) error {
		sent := time.Now()
		rows, err := c.Query(ctx, s.swapMany, names, was, versions, entries, holders, fences, ends, moment(from), moment(to))
		return each(rows, err, func(scan sqltable.Scan) error {
			var name []byte
			var now int64
			if err := scan(&name, &now); err != nil {
				return err
			}
			i := index[string(name)]
			done[i] = optimistic.Swapped{Done: true, Version: uint64(versions[i])}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
	})
	if inVain(err) {
		return make([]optimistic.Swapped, n), nil
	}
	// What all windows have in common is narrow where computing the swaps took long.
	window := optimistic.Window{From: swaps[0].Window.From, To: to}
	if i := slices.IndexFunc(done, func(d optimistic.Swapped) bool { return !d.Done }); err == nil && i >= 0 && s.past(window, time.Now()) {
		for i := range done {
			done[i].Late = !done[i].Done
		}
	} else if err == nil && i >= 0 {
		err = s.explain(ctx, swaps, done)
	}
	return done, err
}

// explain says of swaps that were in vain what is there now. What is there as it was is
// locked by somebody's transaction.
func (s *store) explain(ctx context.Context, swaps []optimistic.Swap, done []optimistic.Swapped) error {
	var names []string
	var which []int
	for i, w := range swaps {
		if !done[i].Done && w.Version != 0 && len(w.Signals) == 0 {
			names, which = append(names, w.Name), append(which, i)
		}
	}
	if len(names) == 0 {
		return nil
	}
	all, err := s.Load(ctx, names)
	if err != nil {
		return err
	}
	for k, i := range which {
		if done[i].Known, done[i].Now = true, all[k]; all[k].Version == swaps[i].Version {
			done[i] = optimistic.Swapped{Err: s.failed(skippedError{})}
		}
	}
	return nil
}

// skippedError is what the server would say of a row that it left out.
type skippedError struct{}

func (skippedError) Error() string    { return "somebody has locked its row" }
func (skippedError) SQLState() string { return "55P03" }

// moment is an instant as the server has it, NULL for 0.
func moment(i locktable.Instant) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: i.Time(), Valid: i != 0}
}

// do runs f with a connection, and types what fails.
func (s *store) do(ctx context.Context, f func(c *pgx.Conn) error) error {
	c, free, err := s.connect(ctx)
	if err == nil {
		err = f(c)
		s.ended(ctx, c, err)
		free()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return s.failed(err)
}

// told hears what the other table is told of the time. A long wait for a row says nothing
// of how long an answer takes.
func (s *store) told(is locktable.Instant, asked, now time.Time) {
	if now.Sub(asked) < 100*time.Millisecond {
		s.clock.Learn(is, asked, now)
	}
}

// Scan implements optimistic.Store. The driver reads through the other table.
func (*store) Scan(context.Context, string) iter.Seq2[optimistic.Named, error] {
	return func(func(optimistic.Named, error) bool) {}
}

// Properties implements optimistic.Store.
func (s *store) Properties() driver.Properties { return s.slow.Properties() }

// Close implements optimistic.Store.
func (*store) Close() error { return nil }
