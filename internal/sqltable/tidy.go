package sqltable

import (
	"context"
	"math/rand/v2"

	"github.com/pawl-go/pawl/locktable"
)

// Clients forget the names that nobody has used for the retention time: about one Update
// in tidyEvery is followed by a transaction that looks at tidyRows names. The database
// remembers where it stands, so that processes which lock twice in their life get through
// it together. After the last name it rests.
//
// When a name was last granted stands in its fence, so there is no index to keep for it.
const (
	tidyEvery = 64
	tidyRows  = 64
)

// TidyNowAndThen does so in the background. Whoever changes entries without Update calls
// it, too. What fails here is done next time, or by others.
func (t *Table) TidyNowAndThen() {
	if rand.N(tidyEvery) != 0 || t.closing.Err() != nil {
		return
	}
	select {
	case t.tidying <- struct{}{}:
	default:
		return
	}
	t.running.Go(func() {
		defer func() { <-t.tidying }()
		ctx, cancel := context.WithTimeout(t.closing, patience)
		defer cancel()
		_ = t.tidy(ctx)
	})
}

func (t *Table) tidy(ctx context.Context) error {
	tx, err := t.db.Begin(ctx, shortWait)
	if err != nil {
		return err
	}
	over := false
	defer func() {
		if !over {
			tx.Rollback(ctx)
		}
	}()
	var cursor []byte
	var rest, now int64
	err = tx.Query(ctx, Statement{SQL: t.sql.selectTidying}, func(scan Scan) error { return scan(&cursor, &rest, &now) })
	pause := t.Retention / 24
	if at := locktable.Instant(now); err != nil || now < rest && locktable.Instant(rest) <= at.Add(pause) {
		return err // a longer rest is from before the clock was set back
	}
	next, until, lapsed, err := t.forget(ctx, tx, string(cursor), locktable.Instant(now))
	if err != nil {
		return err
	}
	over = true
	err = tx.Commit(ctx, Statement{SQL: t.sql.setTidying, Args: []any{[]byte(next), int64(until)}, Rows: -1})
	for _, name := range lapsed {
		if err == nil { // its waiters may have died, and nobody has come since to find out
			err = t.Update(ctx, []locktable.Step{{Name: name}}, func(int, *locktable.Entry, locktable.Instant) {})
		}
	}
	return err
}

// forget looks at some names, from a name on. It returns where to go on and not before
// when, and the names whose waiters have lapsed.
func (t *Table) forget(ctx context.Context, tx Tx, from string, now locktable.Instant) (next string, until locktable.Instant, lapsed []string, err error) {
	type found struct {
		name    string
		version int64
	}
	var old []found
	n := 0
	some := Statement{SQL: t.sql.some, Args: []any{[]byte(from), tidyRows}}
	err = tx.Query(ctx, some, func(scan Scan) error {
		var name, stored []byte
		var version int64
		if err := scan(&name, &version, &stored); err != nil {
			return err
		}
		n, next = n+1, string(name)
		e, damage := locktable.Decode(stored)
		if damage != nil {
			return nil //nolint:nilerr // who asks for the name is told
		}
		switch {
		case e.Rest.Len > 0 && e.Rest.Lapses <= now:
			lapsed = append(lapsed, next)
		case e.Forgettable(now, t.Retention):
			old = append(old, found{next, version})
		}
		return nil
	})
	for _, o := range old {
		if err == nil {
			_, err = tx.Exec(ctx, Statement{SQL: t.sql.forget, Args: []any{[]byte(o.name), o.version}})
		}
	}
	if n < tidyRows {
		next, until = "", now.Add(t.Retention/24)
	}
	return next, until, lapsed, err
}
