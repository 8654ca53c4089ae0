package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Acquire implements driver.Driver. A claim that has a place in the queue from here on is
// looked for by the watch. What happens before that it finds at its first look, for it
// compares what is there.
func (d *Driver) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	sent := time.Now()
	g, err := d.Driver.Acquire(ctx, c)
	if err == nil {
		d.store.poller.left(c.Name, c.Token)
		d.store.poller.holds(c.Token, time.Now().Add(c.TTL))
	} else if held, ok := errors.AsType[*driver.HeldError](err); ok && held.Position > 0 {
		d.store.poller.waits(&c, held, sent)
	}
	return g, err
}

// Release implements driver.Driver.
func (d *Driver) Release(ctx context.Context, l driver.LeaseRef) error {
	d.store.poller.gone(l.Name, l.Token)
	return d.Driver.Release(ctx, l)
}

// Renew implements driver.Driver. It renews as many at once as go into one statement, for
// the window of a statement that had to wait for others could be over.
func (d *Driver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	answers := make([]error, 0, len(leases))
	for _, l := range leases { // all, before anything is sent
		if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL)); err != nil {
			return nil, err
		}
	}
	for some := range slices.Chunk(leases, batch) {
		part, err := d.renew(ctx, some)
		if err != nil && len(answers) == 0 {
			return nil, err
		}
		if err != nil {
			part = slices.Repeat([]error{err}, len(some))
		}
		answers = append(answers, part...)
	}
	return answers, nil
}

// renew renews some leases. Those that it does not renew are ours no more, or nobody
// knows: then an earlier end is as good as a later one.
func (d *Driver) renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	now := time.Now()
	answers, err := d.renewFree(ctx, leases)
	for i, answer := range answers {
		switch {
		case answer == nil:
			d.store.poller.holds(leases[i].Token, now.Add(leases[i].TTL))
		case errors.Is(answer, driver.ErrNotHeld):
			d.store.poller.gone(leases[i].Name, leases[i].Token)
		}
	}
	return answers, err
}

// renewFree renews some leases. If somebody keeps the row of one of them locked, a
// transaction that called Guard, the others are renewed without it.
func (d *Driver) renewFree(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	answers, err := d.Driver.Renew(ctx, leases)
	if !isLocked(err) || len(leases) == 1 {
		return answers, err
	}
	free, lookErr := d.store.free(ctx, leases)
	if lookErr != nil {
		return nil, errors.Join(err, lookErr)
	}
	answers = slices.Repeat([]error{err}, len(leases))
	var some []driver.LeaseRef
	var which []int
	for i, l := range leases {
		if free[l.Name] {
			some, which = append(some, l), append(which, i)
		}
	}
	if len(some) == len(leases) || len(some) == 0 {
		return nil, err // it is over, or concerns all: asked again soon
	}
	others, err := d.Driver.Renew(ctx, some)
	if err != nil {
		return nil, err
	}
	for k, i := range which {
		answers[i] = others[k]
	}
	return answers, nil
}

// free are the names whose rows nobody keeps locked at this moment.
func (s *store) free(ctx context.Context, leases []driver.LeaseRef) (map[string]bool, error) {
	names := make([]string, len(leases))
	for i, l := range leases {
		names[i] = l.Name
	}
	free := map[string]bool{}
	err := s.do(ctx, func(ctx context.Context) error {
		return s.query(ctx, "SELECT name FROM "+s.names+" WHERE name IN ("+blobs(names)+") FOR UPDATE SKIP LOCKED", func(rows *sql.Rows) error {
			var name string
			err := rows.Scan(&name)
			free[name] = true
			return err
		})
	})
	return free, err
}
