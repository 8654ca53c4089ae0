package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// Renew implements driver.Driver. It computes and sends the leases of one statement at a
// time. If it computed more first, the last ones could come too late for their window.
func (d *lockDriver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	answers := make([]error, 0, len(leases))
	for _, l := range leases { // check all leases before the first request
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

// renew renews some leases, and records the result. It records nothing for a lease whose
// state is unknown: the end recorded before is good enough.
func (d *lockDriver) renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	sent := time.Now()
	answers, err := d.renewFree(ctx, leases)
	d.store.claims.Renewed(leases, sent, answers)
	return answers, err
}

// renewFree renews some leases. If a transaction that called CheckLease keeps the row of
// one lease locked, renewFree renews the other leases.
func (d *lockDriver) renewFree(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	answers, err := d.Noted.Driver.Renew(ctx, leases)
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
		return nil, err // the lock is gone, or all rows are locked: the client soon renews again
	}
	others, err := d.Noted.Driver.Renew(ctx, some)
	if err != nil {
		return nil, err
	}
	for k, i := range which {
		answers[i] = others[k]
	}
	return answers, nil
}

// free returns the names whose rows no transaction keeps locked at this moment.
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
