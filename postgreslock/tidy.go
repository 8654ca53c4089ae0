package postgreslock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/locktable"
)

// Clients forget names that were unused for the retention time: after about one step in
// tidyEvery, a client checks tidyRows names. The database keeps the position, so
// that many short processes together reach all names. After the last name, tidying
// pauses.
//
// The fence of a name has the time of its last grant in it, so no index is needed.
const (
	tidyEvery = 64
	tidyRows  = 64
)

// tidyNowAndThen tidies some names in the background. If that fails, a later step or
// another client repeats it.
func (s *store) tidyNowAndThen() {
	if rand.N(tidyEvery) != 0 || s.closing.Err() != nil {
		return
	}
	select {
	case s.tidying <- struct{}{}:
	default:
		return
	}
	s.running.Go(func() {
		defer func() { <-s.tidying }()
		ctx, cancel := context.WithTimeout(s.closing, 10*time.Second)
		defer cancel()
		_ = s.tidy(ctx)
	})
}

func (s *store) tidy(ctx context.Context) error {
	return s.request(ctx, func(r *request) error {
		var from []byte
		var rest, is int64
		err := r.conn.QueryRow(r.ctx, s.sql.selectTidying).Scan(&from, &rest, &is)
		now, pause := locktable.Instant(is), s.options.Retention/24
		if err != nil || is < rest && locktable.Instant(rest) <= now.Add(pause) {
			return err // a pause that ends later was stored before the clock was set back, and does not count
		}
		var last pgx.Batch // one transaction, in which only unused names are locked
		var name, stored []byte
		var version, at int64
		n := 0
		rows, _ := r.conn.Query(r.ctx, s.sql.page, from, tidyRows) // ForEachRow returns its error
		_, err = pgx.ForEachRow(rows, []any{&name, &version, &stored, &at}, func() error {
			n++
			e, damage := locktable.Decode(stored)
			if damage == nil && e.Forgettable(now, s.options.Retention) { // a step on the name reports damage
				last.Queue(s.sql.forget, name, version)
			}
			return nil
		})
		if err != nil {
			return err
		}
		until := locktable.Instant(0)
		if n < tidyRows {
			name, until = []byte{}, now.Add(pause)
		}
		last.Queue(s.sql.setTidying, name, int64(until))
		return r.conn.SendBatch(r.ctx, &last).Close()
	})
}
