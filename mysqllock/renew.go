package mysqllock

import (
	"context"
	"errors"
	"slices"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/internal/sqlswap"
	"github.com/pawl-go/pawl/locktable/swap"
)

// Renew implements driver.Driver. It computes and sends the renewals of one statement at
// a time. If it computed all of them first, the last ones could arrive after their
// window.
func (d *lockDriver) Renew(ctx context.Context, leases []driver.LeaseRef) ([]error, error) {
	answers := make([]error, 0, len(leases))
	for _, l := range leases { // check all leases before the first request
		if err := errors.Join(driver.ValidateName(l.Name), driver.ValidateTTL("TTL", l.TTL)); err != nil {
			return nil, err
		}
	}
	if len(leases) > 1 {
		ctx = context.WithValue(ctx, oneOfSeveral{}, true)
	}
	for chunk := range slices.Chunk(leases, maxBatch) {
		part, err := d.Tracked.Renew(ctx, chunk)
		if err != nil && len(answers) == 0 {
			return nil, err
		}
		if err != nil {
			part = slices.Repeat([]error{err}, len(chunk))
		}
		answers = append(answers, part...)
	}
	return answers, nil
}

// oneOfSeveral is the key of a mark in the ctx of several renewals. If the table repeats
// one of them alone, the answers to the others wait for it.
type oneOfSeveral struct{}

// failLocked sets the results of swaps whose statement waited too long for a row that a
// transaction keeps locked, such as one that called CheckLease. The swap of such a row
// gets the error. The table repeats the other swaps.
func (s *store) failLocked(ctx context.Context, swaps []swap.Swap, swapped []swap.Swapped, indexes []int, err error) error {
	free := map[string]bool{}
	statement := "SELECT name FROM " + s.namesTable + " WHERE name IN (" + literalsOf(sqlswap.Names(swaps, indexes)) + ") FOR UPDATE SKIP LOCKED"
	var name string
	queryErr := s.do(ctx, func(ctx context.Context) error {
		return s.query(ctx, statement, []any{&name}, func() { free[name] = true })
	})
	if queryErr != nil {
		return errors.Join(err, queryErr)
	}
	for _, i := range indexes {
		if swapped[i].OutsideWindow = free[swaps[i].Name]; !swapped[i].OutsideWindow {
			swapped[i].Err = err
		}
	}
	return nil
}
