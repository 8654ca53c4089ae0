package postgreslock

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// A waiter with a row of its own refreshes its place regularly. If the refresh changes
// only that row, the driver locks nothing else. Otherwise, in a crowd of waiters, locks
// on the row of the name would keep the holder from renewing its lease.

// keepPlace takes a step that only refreshes the place of a waiter with a row, in two
// statements. It reports whether it did. If not, nothing has changed, and a transaction
// takes the step.
//
// The first statement reads. The second changes the waiter's row if the row is unchanged,
// and its place has not lapsed. A transaction that grants the name to the waiter, or
// removes the waiter from the queue, locks the waiter's row before it reads the row, and
// deletes it. If that transaction comes first, the second statement finds no row. If it
// comes later, the lease lasts as long as the kept place would have. The waiter trusts
// its grant for that long, so the second statement also waits for the disk.
func (s *store) keepPlace(ctx context.Context, step locktable.Step, f function) bool {
	err := s.do(ctx, func(r *request) error {
		g, end, err := s.readWaiter(ctx, r, step)
		if err != nil {
			return err
		}
		e, m, err := locktable.Apart(g, step, g.stored, g.now, func(e *locktable.Entry) error {
			return r.whileAwaited(func() { f(0, e, g.now) })
		})
		if err != nil {
			return err
		}
		if len(m.Kept) != 1 || len(m.Joined)+len(m.Left)+len(e.Signals) > 0 || e.Changed && !bytes.Equal(e.Append(nil), g.stored) {
			return errMore
		}
		w := m.Kept[0]
		tag, err := r.conn.Exec(r.ctx, s.sql.keepOnly, []byte(step.Name), w.Token[:], int64(w.Expires), w.Append(nil), g.waiter, int64(g.now), int64(end))
		if err == nil && tag.RowsAffected() != 1 {
			err = errMore
		}
		return err
	})
	return err == nil
}

// errMore means that a step has to do more than keep a place.
var errMore = errors.New("the step does not only keep a place")

// A waiterSnapshot has the data that a waiter with a row reads at one moment, without
// locking anything. It implements locktable.Rows, and changes nothing.
type waiterSnapshot struct {
	stored, waiter []byte
	now            locktable.Instant
	own            locktable.Waiter
	ahead          int
}

func (s *store) readWaiter(ctx context.Context, r *request, step locktable.Step) (g *waiterSnapshot, end locktable.Instant, err error) {
	g = &waiterSnapshot{}
	sent := time.Now()
	err = r.conn.QueryRow(r.ctx, s.sql.readWaiter, []byte(step.Name), step.Token[:]).Scan(&g.stored, (*int64)(&g.now), &g.waiter, &g.ahead)
	if err == nil {
		s.clock.Learn(g.now, sent, time.Now())
		g.own, err = locktable.DecodeWaiter(g.waiter)
	}
	if err == nil {
		end, err = latest(ctx, g.now, []locktable.Step{step})
	}
	return g, end, err
}

// Lapse implements locktable.Rows.
func (g *waiterSnapshot) Lapse(string, locktable.Instant) (left int, next, last locktable.Instant, err error) {
	return 0, 0, 0, errMore
}

// Look implements locktable.Rows.
func (g *waiterSnapshot) Look(_ string, l locktable.Look) (locktable.Sight, error) {
	if l.First > 0 || l.Token != g.own.Token {
		return locktable.Sight{}, errMore
	}
	return locktable.Sight{Own: &g.own, Ahead: g.ahead}, nil
}

// Move implements locktable.Rows.
func (g *waiterSnapshot) Move(string, locktable.Moves) error { return nil }
