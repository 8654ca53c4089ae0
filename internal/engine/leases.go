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
// transaction locks the rows in this order, so two of them cannot wait for each other.
type Leases []CheckedLease

// A CheckedLease is one of Leases.
type CheckedLease struct {
	Name  string
	Fence uint64
}

// LeasesOf checks leases before anything is sent. It refuses an empty list, a nil lease,
// and a lease that its client knows to be over. foreign checks the backend that granted a
// lease. It returns the Problem and the Allowed of an InvalidError, or "" if the check
// covers that backend.
func LeasesOf(given []driver.Lease, foreign func(backend string) (problem, allowed string)) (Leases, error) {
	if len(given) == 0 {
		return nil, &driver.InvalidError{What: "check", Problem: "has no lease", Allowed: "one or more"}
	}
	all := make(Leases, 0, len(given))
	for i, l := range given {
		if l == nil || l.StoredName() == "" && l.Fence() == 0 { // a *pawl.Lease that was never granted
			what := "lease"
			if len(given) > 1 {
				what = fmt.Sprintf("lease %d of %d", i+1, len(given))
			}
			return nil, &driver.InvalidError{
				What: what, Problem: "is nil: pawl.LeaseOf found none for this name in ctx", Allowed: "one that was granted",
			}
		}
		c := CheckedLease{l.StoredName(), l.Fence()}
		if err := errors.Join(driver.ValidateName(c.Name), driver.ValidateFence(c.Fence)); err != nil {
			return nil, err
		}
		if l, ok := l.(interface{ Backend() string }); ok {
			if problem, allowed := foreign(l.Backend()); problem != "" {
				return nil, &driver.InvalidError{What: fmt.Sprintf("lease of %q", c.Name), Problem: problem, Allowed: allowed}
			}
		}
		all = append(all, c)
	}
	// Only now, so that a mistake of the program is reported before a lease that is over.
	for i, l := range given {
		if l, ok := l.(interface{ Err() error }); ok && l.Err() != nil {
			return nil, fmt.Errorf("%w (%q, fence %d): %w", driver.ErrStale, all[i].Name, all[i].Fence, l.Err())
		}
	}
	slices.SortFunc(all, func(a, b CheckedLease) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Fence, b.Fence)) })
	return slices.Compact(all), nil
}

// GrantedElsewhere returns a foreign for LeasesOf. It accepts a lease of this kind of
// backend if the description of the backend ends in tail, the part of Properties.Where
// that names the tables. A server has many addresses, so the text before tail may differ.
// If that text contains one of options, such as " schema=", the tables are others.
func GrantedElsewhere(kind, tail string, options ...string) func(backend string) (problem, allowed string) {
	return func(backend string) (problem, allowed string) {
		if backend != kind && !strings.HasPrefix(backend, kind+" ") {
			return "is of " + backend, "one of " + kind
		}
		place, ours := strings.CutSuffix(backend, tail)
		if !ours || slices.ContainsFunc(options, func(o string) bool { return strings.Contains(place, o) }) {
			return "is of " + backend + ", and the check reads other tables", "CheckLease of the driver that granted it"
		}
		return "", ""
	}
}

// Names are the names of the leases, each once.
func (all Leases) Names() (names []string) {
	for _, l := range all {
		names = append(names, l.Name)
	}
	return slices.Compact(names)
}

// LockedRows are the entries of names whose rows a transaction has locked, each with the
// time at which it had the lock.
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
			return fmt.Errorf("%w (%q, fence %d; %s has no lock of this name: did a client of other tables, or of another database, grant it?)",
				driver.ErrStale, l.Name, l.Fence, tables)
		case !row.entry.Holds(row.at, l.Fence):
			return fmt.Errorf("%w (%q, fence %d)", driver.ErrStale, l.Name, l.Fence)
		}
	}
	return nil
}

// Failed is the error of a check that failed. It contains the cause of the end of ctx.
func (all Leases) Failed(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
		err = fmt.Errorf("%w (%w)", err, why)
	}
	return fmt.Errorf("pawl: check the lease of %s: %w", all, err)
}

// String is the names, for messages.
func (all Leases) String() string {
	var quoted []string
	for _, name := range all.Names() {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
