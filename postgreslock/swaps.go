package postgreslock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawl-go/pawl/internal/backoff"
	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// A statement changes a row if the row still has the version that the client read, and
// the server's clock is within the window.
//
// PostgreSQL checks this condition before it waits for a locked row. It checks again only
// if the other transaction has changed the row. So the statement reads the clock again
// after its change. If the window is over, the statement fails, and changes nothing.

// shortWait bounds a statement's wait for a locked row. Most steps of other clients end
// sooner. Transactions that have checked a lease take longer: see swapAfterWait.
const shortWait = 10 * time.Millisecond

// Swap implements swap.Store.
func (s *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.tidier.CountSwap()
	if len(swaps) > 1 {
		return s.swapTogether(ctx, swaps)
	}
	swapped, err := s.swapOne(ctx, swaps[0], shortWait, s.request)
	if isLocked(err) {
		swapped, err = s.swapAfterWait(ctx, swaps[0], err)
	}
	switch {
	case isLocked(err) && ctx.Err() == nil:
		swapped = swap.Swapped{Err: s.statementError(err)}
	case err != nil:
		return nil, s.driverError(ctx, err)
	}
	return []swap.Swapped{swapped}, nil
}

// swapOne makes one swap, in a request that run sends.
func (s *store) swapOne(
	ctx context.Context, w swap.Swap, wait time.Duration, run func(ctx context.Context, f func(r *request) error) error,
) (swapped swap.Swapped, err error) {
	err = run(ctx, func(r *request) error {
		result, err := s.swap(r.ctx, r.conn, w, wait)
		s.passResult(r, w, result, func() { swapped = result })
		return err
	})
	return swapped, err
}

// passResult passes the result of a swap to its caller. If the caller has returned,
// passResult delivers the signals for this client, because the caller cannot.
func (s *store) passResult(r *request, w swap.Swap, result swap.Swapped, pass func()) {
	if r.whileAwaited(pass) || !result.Done {
		return
	}
	for _, to := range w.Entry.Signals {
		if to.Inbox == s.inbox {
			s.deliver(to.Signal)
		}
	}
}

// swapAfterWait repeats a swap whose row was locked, and waits for the row until the
// window ends. If the swap misses its window, the next window is wider, so a step that
// has to wait for many others gets its turn. Only a few swaps at a time wait like this;
// others wait until one of these ends. A renewal does not wait for that, but fails,
// because the client repeats it, and has other leases to renew. One of several renewals
// never waits for a row, because the answers to the others would wait, too.
func (s *store) swapAfterWait(ctx context.Context, w swap.Swap, lockErr error) (swap.Swapped, error) {
	if renewals, ok := ctx.Value(leaseCountKey{}).(int); ok {
		if renewals > 1 {
			return swap.Swapped{}, lockErr
		}
		select {
		case s.longWaits <- struct{}{}:
		default:
			return swap.Swapped{}, lockErr
		}
	} else {
		select {
		case s.longWaits <- struct{}{}:
		case <-ctx.Done():
			return swap.Swapped{}, lockErr
		case <-s.closing.Done():
			return swap.Swapped{}, lockErr
		}
	}
	wait, untilDeadline := s.timeLeft(w.Window), false
	if end, ok := ctx.Deadline(); ok { // so that swapAfterWait returns the error of the lock before ctx ends
		if limit := time.Until(end) * 3 / 4; limit < wait {
			wait, untilDeadline = limit, true
		}
	}
	wait = max(wait, shortWait)
	swapped, err := s.swapOne(ctx, w, wait, func(ctx context.Context, f func(r *request) error) error {
		// The caller may return before the row is free. The connection stays in use.
		return s.requestInBackground(ctx, wait+answerTimeout, func() { <-s.longWaits }, f)
	})
	if isLocked(err) && !untilDeadline {
		s.clock.RecordOutside(w.Window)
		return swap.Swapped{OutsideWindow: true}, nil
	}
	return swapped, err
}

// leaseCountKey is the key of a value in the ctx of a Renew: the number of its leases.
type leaseCountKey struct{}

func (s *store) timeLeft(window swap.Window) time.Duration {
	serverTime, ok := s.clock.Window(time.Now())
	if !ok {
		return 0
	}
	return serverTime.From.Until(window.To)
}

// swap makes one swap. If the row stays locked for the time wait, it returns an error.
func (s *store) swap(ctx context.Context, c *pgx.Conn, w swap.Swap, wait time.Duration) (swapped swap.Swapped, err error) {
	statement := s.sql.swapOne
	switch {
	case w.Version == 0:
		statement = s.sql.swapNew
	case leavesFree(w.Entry):
		statement = s.sql.swapFree
	}
	version := newVersion()
	columns := engine.ColumnsOf(w.Entry)
	args := []any{
		[]byte(w.Name), int64(w.Version), version, w.Value, validText(columns.Holders), int64(columns.Fence), timestamp(columns.Until),
		timestamp(w.Window.From), timestamp(w.Window.To), milliseconds(wait),
	}
	calls, args := s.notifications(w.Signals, args)
	if calls != "" {
		statement = "WITH done (now) AS (" + statement + ") SELECT now" + calls + " FROM done"
	}
	changed, err := s.change(ctx, c, w.Window, statement, args)
	switch {
	case s.notifyPause.beginIfRefused(err):
		return s.swap(ctx, c, w, wait)
	case changed:
		return swap.Swapped{Done: true, Version: uint64(version)}, nil
	case changedNothing(err):
		return swap.Swapped{}, nil
	case err != nil:
		return swap.Swapped{}, err
	}
	return swap.Swapped{OutsideWindow: s.isPast(w.Window, time.Now())}, nil
}

// change runs a statement that returns the time of its change, or no row.
func (s *store) change(ctx context.Context, c *pgx.Conn, window swap.Window, statement string, args []any) (changed bool, err error) {
	sent := time.Now()
	if s.timeLeft(window) < 0 { // the step waited too long for a connection
		return false, nil
	}
	rows, err := c.Query(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if rows.Next() {
		var now int64
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &now
		if err := rows.Scan(into...); err != nil {
			return false, err
		}
		changed = true
		s.clock.RecordInside(window)
		if received := time.Now(); received.Sub(sent) < slowThreshold { // a wait for a row is no round trip
			s.clock.Learn(locktable.Instant(now), sent, received)
		}
	}
	rows.Close()
	return changed && rows.Err() == nil, rows.Err()
}

// changedNothing reports whether a failed statement has changed nothing, and may succeed
// with the current values.
func changedNothing(err error) bool { return isRetryable(err) || sqlState(err) == tooLateState }

// newVersion returns a random version instead of counting. So no two values of a name
// have the same version, even if the name was forgotten in between, or the server lost
// its latest changes, by a restore or a failover.
func newVersion() int64 { return 1 + rand.Int64N(1<<62) }

// milliseconds returns a duration as the value of lock_timeout.
func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// leavesFree reports whether a swap leaves the name free, without a value, a break or a
// lock-delay. Such a swap does not wait for the disk: if the server crashes before it has
// written the release, the lease expires, as if its holder had died. The next grant waits
// for the disk, and so for all earlier writes.
func leavesFree(e *locktable.Entry) bool {
	return len(e.Holders) == 0 && len(e.Queue) == 0 && e.Closed == 0 && len(e.Broken) == 0 && len(e.Value.Bytes) == 0
}

// isPast reports whether the server's clock has passed the end of a window. If so, it
// makes the next window wider.
func (s *store) isPast(window swap.Window, now time.Time) bool {
	serverTime, ok := s.clock.Window(now)
	if ok && serverTime.From <= window.To {
		return false
	}
	s.clock.RecordOutside(window)
	return true
}

// swapArgs has the arguments of a statement that makes several swaps.
type swapArgs struct {
	versions []int64     // the new version of each name
	window   swap.Window // the intersection of all windows
	args     []any
}

func swapArgsOf(swaps []swap.Swap) swapArgs {
	n := len(swaps)
	names, oldVersions, versions := make([][]byte, n), make([]int64, n), make([]int64, n)
	entries, holders := make([][]byte, n), make([][]byte, n)
	fences, ends := make([]int64, n), make([]pgtype.Timestamptz, n)
	common := swaps[0].Window
	for i, w := range swaps {
		c := engine.ColumnsOf(w.Entry)
		names[i], oldVersions[i], versions[i] = []byte(w.Name), int64(w.Version), newVersion()
		entries[i], holders[i], fences[i], ends[i] = w.Value, validText(c.Holders), int64(c.Fence), timestamp(c.Until)
		common.From, common.To = max(common.From, w.Window.From), min(common.To, w.Window.To)
	}
	return swapArgs{versions, common, []any{names, oldVersions, versions, entries, holders, fences, ends, timestamp(common.From), timestamp(common.To)}}
}

// SwapAll implements swap.AllSwapper.
func (s *store) SwapAll(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	s.tidier.CountSwap()
	combined := swapArgsOf(swaps)
	var signals []locktable.Signal
	for _, w := range swaps {
		signals = append(signals, w.Signals...)
	}
	calls, args := s.notifications(signals, append(combined.args, milliseconds(shortWait)))
	swapped := make([]swap.Swapped, len(swaps))
	err := s.request(ctx, func(r *request) error {
		changed, err := s.change(r.ctx, r.conn, combined.window, s.sql.swapAll+" SELECT now"+calls+" FROM done", args)
		late := err == nil && !changed && s.isPast(combined.window, time.Now())
		for i, w := range swaps {
			result := swap.Swapped{OutsideWindow: late}
			if changed {
				result = swap.Swapped{Done: true, Version: uint64(combined.versions[i])}
			}
			s.passResult(r, w, result, func() { swapped[i] = result })
		}
		return err
	})
	switch {
	case s.notifyPause.beginIfRefused(err), changedNothing(err), isLocked(err):
		return make([]swap.Swapped, len(swaps)), nil
	case err != nil:
		return nil, s.driverError(ctx, err)
	}
	return swapped, nil
}

// swapTogether makes many swaps, except those with new rows or signals: the table repeats
// these steps alone. If rows are locked, swapTogether repeats their swaps after a moment,
// because most locks are short.
func (s *store) swapTogether(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	swapped := make([]swap.Swapped, len(swaps))
	var pending []int
	for i, w := range swaps {
		if w.Version != 0 && len(w.Signals) == 0 {
			pending = append(pending, i)
		}
	}
	pauses := []time.Duration{10 * time.Millisecond, 50 * time.Millisecond}
	for n := 0; len(pending) > 0; n++ {
		batch := make([]swap.Swap, len(pending))
		for k, i := range pending {
			batch[k] = swaps[i]
		}
		results, err := s.swapAtOnce(ctx, batch)
		if err != nil {
			return nil, err
		}
		for k, i := range pending {
			swapped[i] = results[k]
		}
		pending = slices.DeleteFunc(pending, func(i int) bool { return !errors.Is(swapped[i].Err, swap.ErrLocked) })
		if n == len(pauses) || len(pending) > 0 && backoff.Wait(ctx, pauses[n]) != nil {
			break
		}
	}
	return swapped, nil //nolint:nilerr // the swaps that are still left have ErrLocked
}

// swapAtOnce makes many swaps of existing rows in one statement.
func (s *store) swapAtOnce(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	combined := swapArgsOf(swaps)
	index := make(map[string]int, len(swaps))
	for i, w := range swaps {
		index[w.Name] = i
	}
	swapped := make([]swap.Swapped, len(swaps))
	err := s.do(ctx, func(r *request) error {
		sent := time.Now()
		var name []byte
		var now int64
		rows, _ := r.conn.Query(r.ctx, s.sql.swapMany, combined.args...)
		_, err := pgx.ForEachRow(rows, []any{&name, &now}, func() error {
			i := index[string(name)]
			swapped[i] = swap.Swapped{Done: true, Version: uint64(combined.versions[i])}
			s.clock.Learn(locktable.Instant(now), sent, time.Now())
			return nil
		})
		if changedNothing(err) { // the server may send this error at the commit, after the rows
			err = nil
			clear(swapped)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var pending []int
	for i := range swaps {
		if !swapped[i].Done {
			pending, swapped[i].Version = append(pending, i), uint64(combined.versions[i])
		}
	}
	// This is not the common window, which may be tiny if computing the swaps took long.
	window := swap.Window{From: swaps[0].Window.From, To: combined.window.To}
	if len(pending) > 0 && s.isPast(window, time.Now()) {
		for _, i := range pending {
			swapped[i].OutsideWindow = true
		}
		return swapped, nil
	}
	return swapped, sqlswap.LoadResults(ctx, s.Load, swaps, swapped, pending, func(i int) { // the row is locked
		swapped[i] = swap.Swapped{Err: s.statementError(skippedError{})}
	})
}

// skippedError is the error for a row that SKIP LOCKED has skipped, with the code of a
// locked row.
type skippedError struct{}

func (skippedError) Error() string    { return "another session has locked its row" }
func (skippedError) SQLState() string { return "55P03" }
