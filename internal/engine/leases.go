package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Leases are the leases that a transaction checks, in the order of their names. Each
// transaction locks the rows in this order, so two transactions cannot deadlock.
type Leases []CheckedLease

// A CheckedLease is the name and the fence of one lease.
type CheckedLease struct {
	Name  string
	Fence uint64
}

// LeasesOf checks the arguments of a lease check before it sends a request. It refuses a
// nil ctx, a nil transaction, an empty list, a nil lease, and a lease that has ended
// according to its client. LeasesOf passes the backend that granted a lease to foreign.
// If that is not the checked backend, foreign returns the Problem and the Allowed of an
// InvalidError, and otherwise "".
func LeasesOf(ctx context.Context, tx any, given []driver.Lease, foreign func(backend string) (problem, allowed string)) (Leases, error) {
	if IsNil(tx) {
		return nil, &driver.InvalidError{Argument: "transaction", Problem: "is nil", Allowed: "an open transaction: the work that needs the lease"}
	}
	if err := CheckContext(ctx); err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return nil, &driver.InvalidError{Argument: "check", Problem: "has no lease", Allowed: "one or more"}
	}
	all := make(Leases, 0, len(given))
	for i, l := range given {
		if l == nil || l.StoredName() == "" && l.Fence() == 0 { // a *pawl.Lease that was never granted
			what := "lease"
			if len(given) > 1 {
				what = fmt.Sprintf("lease %d of %d", i+1, len(given))
			}
			return nil, &driver.InvalidError{
				Argument: what, Problem: "is nil: pawl.LeaseOf found none for this name in ctx", Allowed: "one that was granted",
			}
		}
		c := CheckedLease{l.StoredName(), l.Fence()}
		if err := errors.Join(driver.ValidateName(c.Name), driver.ValidateFence(c.Fence)); err != nil {
			return nil, err
		}
		if l, ok := l.(interface{ Backend() string }); ok {
			if problem, allowed := foreign(l.Backend()); problem != "" {
				return nil, &driver.InvalidError{Argument: fmt.Sprintf("lease of %q", c.Name), Problem: problem, Allowed: allowed}
			}
		}
		all = append(all, c)
	}
	// This loop comes last, so that a mistake of the program is reported before a lease
	// that has ended.
	for i, l := range given {
		if l, ok := l.(interface{ Err() error }); ok && l.Err() != nil {
			return nil, fmt.Errorf("%w (%q, fence %d): %w", driver.ErrStale, all[i].Name, all[i].Fence, l.Err())
		}
	}
	slices.SortFunc(all, func(a, b CheckedLease) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Fence, b.Fence)) })
	return slices.Compact(all), nil
}

// GrantedElsewhere returns a foreign function for LeasesOf. The function accepts a lease
// of this kind of backend if the backend's description ends in tail, the part of
// Properties.Location that names the tables. The text before tail may differ, because a
// server may have several addresses. But that text must contain none of options, such as
// " schema=", because they name other tables.
func GrantedElsewhere(kind, tail string, options ...string) func(backend string) (problem, allowed string) {
	return func(backend string) (problem, allowed string) {
		if backend != kind && !strings.HasPrefix(backend, kind+" ") {
			return "is of " + backend, "one of " + kind
		}
		prefix, hasTail := strings.CutSuffix(backend, tail)
		if !hasTail || slices.ContainsFunc(options, func(o string) bool { return strings.Contains(prefix, o) }) {
			return "is of " + backend + ", and the check reads other tables", "CheckLease of the driver that granted it"
		}
		return "", ""
	}
}

// Names returns the names of the leases, each once.
func (all Leases) Names() (names []string) {
	for _, l := range all {
		names = append(names, l.Name)
	}
	return slices.Compact(names)
}

// LockedRows are the entries in the rows that a transaction has locked, each with the
// time at which the transaction had the lock.
type LockedRows map[string]lockedRow

type lockedRow struct {
	entry *locktable.Entry
	at    locktable.Instant
}

// Add adds a row, as it is stored.
func (rows LockedRows) Add(name string, stored []byte, at locktable.Instant) error {
	e, err := locktable.Decode(stored)
	if err != nil {
		return fmt.Errorf("the row of %q: %w", name, err)
	}
	rows[name] = lockedRow{e, at}
	return nil
}

// Stale returns an error that names the first lease that does not hold its name according
// to these rows, or nil. tables are the tables of the rows.
func (all Leases) Stale(rows LockedRows, tables string) error {
	for _, l := range all {
		row, ok := rows[l.Name]
		switch {
		case !ok:
			return fmt.Errorf("%w (%q, fence %d; %s has no lock with this name; maybe a client with other tables or another database granted it)",
				driver.ErrStale, l.Name, l.Fence, tables)
		case !row.entry.Holds(row.at, l.Fence):
			return fmt.Errorf("%w (%q, fence %d)", driver.ErrStale, l.Name, l.Fence)
		}
	}
	return nil
}

// Failed returns the error of a check that failed. If ctx has ended, it contains the
// cause.
func (all Leases) Failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	return fmt.Errorf("pawl: check the lease of %s: %w", all, err)
}

func (all Leases) String() string {
	var quoted []string
	for _, name := range all.Names() {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
