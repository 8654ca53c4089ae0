package postgreslock

import (
	"context"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/locktable"
)

// Clients forget the names that nobody has used for the retention time: about one step in
// tidyEvery is followed by a transaction that looks at tidyRows names. The database
// remembers where it stands, so that processes which lock twice in their life get through
// it together. After the last name it rests.
//
// When a name was last granted stands in its fence, so there is no index to keep for it.
const (
	tidyEvery = 64
	tidyRows  = 64
)

// tidyNowAndThen does so in the background. What fails here is done next time, or by
// other clients.
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
		ctx, cancel := context.WithTimeout(s.closing, patience)
		defer cancel()
		_ = s.tidy(ctx)
	})
}

func (s *store) tidy(ctx context.Context) error {
	lapsed, err := s.forget(ctx)
	for _, name := range lapsed { // its waiters may have died, and no client has come since to find out
		if err == nil {
			err = s.Transact(ctx, []locktable.Step{{Name: name}}, func(int, *locktable.Entry, locktable.Instant) bool { return true })
		}
	}
	return err
}

// forget looks at some names, and forgets the old ones. It returns the names whose
// waiters have lapsed.
func (s *store) forget(ctx context.Context) (lapsed []string, err error) {
	tx, err := s.begin(ctx, shortWait)
	if err != nil {
		return nil, err
	}
	defer tx.end()
	var from []byte
	var rest, is int64
	err = tx.query([]any{&from, &rest, &is}, nothing, s.sql.selectTidying)
	now, pause := locktable.Instant(is), s.options.Retention/24
	if err != nil || is < rest && locktable.Instant(rest) <= now.Add(pause) {
		return nil, err // a longer rest is from before the clock was set back
	}
	var last pgx.Batch
	var name, stored []byte
	var version int64
	n := 0
	err = tx.query([]any{&name, &version, &stored}, func() error {
		n++
		e, damage := locktable.Decode(stored)
		if damage != nil {
			return nil //nolint:nilerr // who asks for the name is told
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
