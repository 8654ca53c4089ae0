package mysqllock

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/engine"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable/swap"
)

// Swap implements swap.Store. Each statement commits by itself.
func (s *store) Swap(ctx context.Context, swaps []swap.Swap) ([]swap.Swapped, error) {
	swapped, order := make([]swap.Swapped, len(swaps)), make([]int, len(swaps))
	for i := range order {
		order[i] = i
	}
	// All clients swap in the order of the names, so that they do not deadlock.
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(swaps[i].Name, swaps[j].Name) })
	for len(order) > 0 {
		n := s.countFitting(swaps, order)
		if err := s.swapBatch(ctx, swaps, swapped, order[:n]); err != nil {
			return nil, err
		}
		for _, i := range order[:n] {
			s.afterSwap(ctx, swaps[i], swapped[i])
		}
		order = order[n:]
	}
	return swapped, nil
}

// maxBatch is the number of rows that one statement changes: enough to share its cost,
// and few enough that other clients do not wait long.
const maxBatch = 256

// statementBytes returns the bytes that a row takes in a statement, if its value grows by
// spare: two characters for each byte, plus a name and the columns for people.
func statementBytes(w *swap.Swap, spare int) int64 { return 2*int64(len(w.Value)+spare) + 4<<10 }

// countFitting returns the number of swaps that fit into one statement: at least one.
func (s *store) countFitting(swaps []swap.Swap, order []int) int {
	bytes := int64(0)
	for n, i := range order[:min(len(order), maxBatch)] {
		if bytes += statementBytes(&swaps[i], 0); n > 0 && bytes > s.maxPacket.Load() {
			return n
		}
	}
	return min(len(order), maxBatch)
}

// checkRoom returns an error if the entry has no room for another claim.
func (s *store) checkRoom(ctx context.Context, w *swap.Swap) error {
	limit := s.maxPacket.Load()
	if w.ReserveBytes == 0 || statementBytes(w, w.ReserveBytes) <= limit {
		return nil
	}
	return s.driverError(ctx, &engine.ConfigError{
		Problem: fmt.Sprintf("the entry has %d bytes, too many for one more claim in a statement of at most %d bytes", len(w.Previous), limit),
		Hint:    tooBigHint,
	}, nil)
}

// swapBatch makes some swaps, with one statement for all existing rows.
//
// Versions are random, not counted. So no two values of a name ever have the same
// version, even if rows are deleted meanwhile, and a swap whose answer was lost can
// recognize its own value.
func (s *store) swapBatch(ctx context.Context, swaps []swap.Swap, swapped []swap.Swapped, indexes []int) error {
	var existing, unsure []int
	for _, i := range indexes {
		if swapped[i].Err = s.checkRoom(ctx, &swaps[i]); swapped[i].Err != nil {
			continue
		}
		if swapped[i].Version = rand.Uint64()>>1 | 1; swaps[i].Version != 0 {
			existing = append(existing, i)
		} else if done, err := s.changesRows(ctx, insertRowCount, isRetryable, s.executionOf(s.insertStatement(swaps[i], swapped[i].Version))); err != nil {
			return err
		} else if swapped[i].Done = done; !done {
			unsure = append(unsure, i)
		}
	}
	if len(existing) > 0 {
		update, retry := s.update(swaps[existing[0]], swapped[existing[0]].Version), isRetryable
		several := len(existing) > 1 || ctx.Value(oneOfSeveral{}) != nil
		if several { // a locked row must not delay the others for long
			update, retry = s.executionOf(s.updateAllStatement(swaps, swapped, existing)), isDeadlock
		}
		done, err := s.changesRows(ctx, len(existing), retry, update)
		switch {
		case isLocked(err) && several:
			return s.failLocked(ctx, swaps, swapped, existing, err)
		case err != nil:
			return err
		}
		for _, i := range existing {
			if swapped[i].Done = done; !done {
				unsure = append(unsure, i)
			}
		}
	}
	if len(unsure) == 0 {
		s.clock.RecordInside(swaps[indexes[0]].Window)
		return nil
	}
	return sqlswap.LoadResults(ctx, s.Load, swaps, swapped, unsure, func(i int) {
		swapped[i].OutsideWindow = true
		s.clock.RecordOutside(swaps[i].Window)
	})
}

// changesRows runs a statement, and reports whether it changed the given number of rows.
func (s *store) changesRows(ctx context.Context, rows int, retry func(error) bool, statement execution) (all bool, err error) {
	err = s.repeatWhile(ctx, retry, func(ctx context.Context) error {
		n, err := statement(ctx)
		if hasNumber(err, overflow) {
			err = nil // the insert was too late, see insertStatement
		}
		all = n == int64(rows)
		return err
	})
	return all, err
}

// insertStatement returns the statement that creates the row of a name. It inserts the
// name twice. The first row may have to wait for other clients that insert the same name,
// or for a transaction that keeps the gap locked. For the second row, the name exists, so
// the statement runs its UPDATE part, which checks the clock. If the row is this client's
// and too late, the version overflows, and that error undoes the statement. The statement
// does not change a row of another client.
func (s *store) insertStatement(w swap.Swap, version uint64) string {
	return withLiterals("INSERT INTO "+s.namesTable+" (name, version, entry, fence, holders, until) VALUES (?, ?, ?, ?, ?, ?), (?, 0, x'', 0, x'', NULL) "+
		"ON DUPLICATE KEY UPDATE version = IF(version = ?, version + 1 + ~0 * ("+serverTime+" NOT BETWEEN ? AND ?), version)",
		slices.Concat([]any{[]byte(w.Name), version - 1, w.Value}, columnsOf(w.Entry),
			[]any{[]byte(w.Name), version - 1, int64(w.Window.From), int64(w.Window.To)}))
}

// insertRowCount is the number of rows that the server counts for an insert: one for the
// new row, and two for its change.
const insertRowCount = 3

// update returns the execution that changes a row. On the driver's own connections, it
// uses a prepared statement. Otherwise parsing would be a third of the server's cost, and
// formatting the values a quarter of the client's cost.
func (s *store) update(w swap.Swap, version uint64) execution {
	args := slices.Concat([]any{version, w.Value}, columnsOf(w.Entry), []any{[]byte(w.Name), w.Version, int64(w.Window.From), int64(w.Window.To)})
	return func(ctx context.Context) (int64, error) {
		if stmt := s.prepared.Load(); stmt != nil { //nolint:sqlclosecheck // it lives as long as the pool
			n, err := rowsAffected(stmt.ExecContext(ctx, args...))
			if !isUnprepared(err) {
				return n, err
			}
		}
		return s.exec(ctx, withLiterals(s.updateStatement(), args))
	}
}

// updateStatement returns the statement of update, with a ? for each argument.
func (s *server) updateStatement() string {
	return "UPDATE " + s.namesTable + " SET version = ?, entry = ?, fence = ?, holders = ?, until = ?" +
		" WHERE name = ? AND version = ? AND " + serverTime + " BETWEEN ? AND ?"
}

// updateAllStatement returns a statement that updates several rows. It reads the table of
// new values first, so that it reads no other rows. It locks each row before it checks
// the clock for that row. In a UNION, MariaDB cuts a literal of 65536 bytes or more to
// its length modulo 65536, unless it is cast.
func (s *store) updateAllStatement(swaps []swap.Swap, swapped []swap.Swapped, indexes []int) string {
	var b strings.Builder
	b.WriteString("UPDATE (")
	for k, i := range indexes {
		if k > 0 {
			b.WriteString(" UNION ALL ")
		}
		w := swaps[i]
		b.WriteString(withLiterals("SELECT ? AS name, ? AS old, ? AS version, CAST(? AS BINARY) AS entry, ? AS fence, ? AS holders, ? AS until, ? AS since, ? AS till",
			slices.Concat([]any{[]byte(w.Name), w.Version, swapped[i].Version, w.Value}, columnsOf(w.Entry), []any{int64(w.Window.From), int64(w.Window.To)})))
	}
	fmt.Fprintf(&b, ") AS new STRAIGHT_JOIN %s AS o ON o.name = new.name AND o.version = new.old "+
		"SET o.version = new.version, o.entry = new.entry, o.fence = new.fence, o.holders = new.holders, o.until = new.until "+
		"WHERE %s BETWEEN new.since AND new.till", s.namesTable, serverTime)
	return s.withShortLockWait(b.String())
}
