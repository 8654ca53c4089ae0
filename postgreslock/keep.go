package postgreslock

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/locktable"
)

// A waiter in a row says every now and then that it still waits. If that changes nothing
// but its row, nothing else is locked for it: with the row of the name locked, a crowd of
// waiters would keep the holder from renewing its lease.

// keep takes a step of a claim that only keeps its place in a row, in two statements.
// It reports whether it could. If not, nothing has changed, and a transaction takes it.
//
// The first statement reads. The second changes the waiter's row if it is as it was read,
// and its place has not lapsed. A transaction that passes the name on to the waiter, or
// takes it out of the queue, locks the waiter's row before it reads it, and deletes it.
// So it comes before the second statement, which then finds no row; or after it, and the
// lease lasts as long as the kept place would have. The waiter trusts its grant for that
// long, so the disk is waited for, too.
func (s *store) keep(ctx context.Context, step locktable.Step, f function) bool {
	err := s.do(ctx, func(c *pgx.Conn) error {
		g, end, err := s.glance(ctx, c, step)
		if err != nil {
			return err
		}
		e, m, err := locktable.Apart(g, step, g.stored, g.now, func(e *locktable.Entry) { f(0, e, g.now) })
		if err != nil {
			return err
		}
		if len(m.Kept) != 1 || len(m.Joined)+len(m.Left)+len(e.Signals) > 0 || e.Changed && !bytes.Equal(e.Append(nil), g.stored) {
			return errMore
		}
		w := m.Kept[0]
		tag, err := c.Exec(ctx, s.sql.keepOnly, []byte(step.Name), w.Token[:], int64(w.Expires), w.Append(nil), g.waiter, int64(g.now), int64(end))
		if err == nil && tag.RowsAffected() != 1 {
			err = errMore
		}
		return err
	})
	return err == nil
}

// errMore means that a step has to do more than to keep a place.
var errMore = errors.New("the step does not only keep a place")

// A glance is what a claim that waits in a row sees without locking anything, at one
// moment. It implements locktable.Rows, and changes nothing.
type glance struct {
	stored, waiter []byte
	now            locktable.Instant
	own            locktable.Waiter
	ahead          int
}

func (s *store) glance(ctx context.Context, c *pgx.Conn, step locktable.Step) (g *glance, end locktable.Instant, err error) {
	g = &glance{}
	sent := time.Now()
	err = c.QueryRow(ctx, s.sql.glance, []byte(step.Name), step.Token[:]).Scan(&g.stored, (*int64)(&g.now), &g.waiter, &g.ahead)
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
func (g *glance) Lapse(string, locktable.Instant) (left int, next, last locktable.Instant, err error) {
	return 0, 0, 0, errMore
}

// Look implements locktable.Rows.
func (g *glance) Look(_ string, l locktable.Look) (locktable.Sight, error) {
	if l.First > 0 || l.Token != g.own.Token {
		return locktable.Sight{}, errMore
	}
	return locktable.Sight{Own: &g.own, Ahead: g.ahead}, nil
}

// Move implements locktable.Rows.
func (g *glance) Move(string, locktable.Moves) error { return nil }
