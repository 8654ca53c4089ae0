package postgreslock

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/locktable"
)

// Clients forget names that were unused for the retention time: after about one step in
// tidyEvery, a transaction checks tidyRows names. The database keeps the position, so
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
		ctx, cancel := context.WithTimeout(s.closing, retryTimeout)
		defer cancel()
		_ = s.tidy(ctx)
	})
}

func (s *store) tidy(ctx context.Context) error {
	lapsed, err := s.forget(ctx)
	for _, name := range lapsed { // the waiters may have died, and no step has removed them since
		if err == nil {
			err = s.Transact(ctx, []locktable.Step{{Name: name}}, func(int, *locktable.Entry, locktable.Instant) bool { return true })
		}
	}
	return err
}

// forget checks some names, and forgets the old ones. It returns the names with waiters
// whose place has lapsed.
func (s *store) forget(ctx context.Context) ([]string, error) {
	var lapsed []string
	err := s.request(ctx, func(r *request) (err error) {
		lapsed, err = s.forgetSome(&tx{r: r, wait: shortWait})
		return err
	})
	if err != nil {
		return nil, err
	}
	return lapsed, nil
}

func (s *store) forgetSome(tx *tx) (lapsed []string, err error) {
	var from []byte
	var rest, is int64
	err = tx.query([]any{&from, &rest, &is}, nothing, s.sql.selectTidying)
	now, pause := locktable.Instant(is), s.options.Retention/24
	if err != nil || is < rest && locktable.Instant(rest) <= now.Add(pause) {
		return nil, err // a pause that ends later was stored before the clock was set back, and does not count
	}
	var last pgx.Batch
	var name, stored []byte
	var version int64
	n := 0
	err = tx.query([]any{&name, &version, &stored}, func() error {
		n++
		e, damage := locktable.Decode(stored)
		if damage != nil {
			return nil //nolint:nilerr // a step on the name reports it
		}
		switch {
		case e.Rest.Len > 0 && e.Rest.Lapses <= now:
			lapsed = append(lapsed, string(name))
		case e.Forgettable(now, s.options.Retention):
			last.Queue(s.sql.forget, name, version)
		}
		return nil
	}, s.sql.some, from, tidyRows)
	if err != nil {
		return nil, err
	}
	until := locktable.Instant(0)
	if n < tidyRows {
		name, until = []byte{}, now.Add(pause)
	}
	last.Queue(s.sql.setTidying, name, int64(until))
	return lapsed, tx.commit(&last)
}
