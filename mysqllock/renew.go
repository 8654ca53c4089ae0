package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

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
	sent := time.Now()
	answers, err := d.renewFree(ctx, leases)
	d.store.claims.Renewed(leases, sent, answers)
	return answers, err
}

// renewFree renews some leases. If somebody keeps the row of one of them locked, a
// transaction that called CheckLease, the others are renewed without it.
func (d *Driver) renewFree(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	answers, err := d.inner.Driver.Renew(ctx, leases)
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
	others, err := d.inner.Driver.Renew(ctx, some)
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
