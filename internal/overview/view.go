package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/driver"
)

// A View has all names as they were at one time. It never changes. All viewers share it,
// so they must not change it.
type View struct {
	Rows      []*Row    // in byte order of their names
	Damaged   []Damage  // names that could not be read
	More      bool      // the backend has more names
	ScannedAt time.Time // when all Rows were read; zero before the first scan

	// Err is the error of the last scan, and ErrSince the time since which scans fail;
	// then Rows are from the last scan that succeeded. Err is nil after a scan that
	// succeeded.
	Err      error
	ErrSince time.Time

	Push       bool          // the backend pushes changes of shown names; otherwise a scan finds them
	ScanTime   time.Duration // how long the last scan took
	Pace       time.Duration // the pause until the next one
	Properties pawl.Properties

	// Offset is an estimate of how far the backend's clock is ahead of this process's
	// clock. It is 0 until a lease contradicts that.
	Offset time.Duration

	*pageCache
}

// A Row is one name.
type Row struct {
	pawl.Entry
	At   time.Time // when it was read, on this process's clock
	TTLs []time.Duration
}

// Damage is a name that could not be read.
type Damage struct {
	Name string
	Err  error
}

// readAll reads all entries, and keeps an error about one name with that name.
func (v *View) readAll(ctx context.Context, c *pawl.Client, prefix string) error {
	for e, err := range c.List(ctx, prefix) {
		switch {
		case err != nil && e.Name == "":
			return err
		case err != nil:
			v.Damaged = append(v.Damaged, Damage{e.Name, err})
		case len(v.Rows) == maxNames:
			v.More = true
			return nil
		default:
			v.Rows = append(v.Rows, &Row{Entry: e, At: time.Now()})
		}
	}
	return nil
}

func (v *View) copy() *View {
	c := *v
	c.Rows, c.pageCache = slices.Clone(v.Rows), &pageCache{}
	return &c
}

// putEntry adds or replaces an entry, or removes it if it is not in use.
func (v *View) putEntry(e pawl.Entry, at time.Time) {
	i, found := v.findRow(e.Name)
	used := len(e.Holders)+len(e.Waiters) > 0 || e.ClosedFor > 0
	switch row := (&Row{Entry: e, At: at}); {
	case found && used:
		v.Rows[i] = row
	case found:
		v.Rows = slices.Delete(v.Rows, i, i+1)
	case used:
		v.Rows = slices.Insert(v.Rows, i, row)
	}
}

// Row returns the row of a name, or nil if the name is not in use.
func (v *View) Row(name string) *Row {
	if i, found := v.findRow(name); found {
		return v.Rows[i]
	}
	return nil
}

func (v *View) findRow(name string) (int, bool) {
	return slices.BinarySearchFunc(v.Rows, name, func(r *Row, name string) int { return strings.Compare(r.Name, name) })
}

// inheritTTLs gives each lease the longest time left that was ever seen. Holder.TTL may
// be longer: a lease that was granted to a waiter lasts only as long as its place in the
// queue, until the new holder's next request.
func (v *View) inheritTTLs(last *View) {
	for _, r := range v.Rows {
		if r.TTLs != nil {
			continue // the row is from last
		}
		r.TTLs = make([]time.Duration, len(r.Holders))
		old := last.Row(r.Name)
		for i := range r.Holders {
			h := &r.Holders[i]
			r.TTLs[i] = h.ExpiresIn
			if old != nil {
				if j := old.holder(h.Fence); j >= 0 {
					r.TTLs[i] = max(r.TTLs[i], old.TTLs[j])
				}
			}
		}
	}
}

// holder returns the index of the lease with a fence, or -1.
func (r *Row) holder(fence uint64) int {
	return slices.IndexFunc(r.Holders, func(h pawl.Holder) bool { return h.Fence == fence })
}

// Left returns the time that the i-th holder has left at now, unless it has renewed since
// it was read.
func (r *Row) Left(i int, now time.Time) time.Duration {
	return max(0, r.Holders[i].ExpiresIn-now.Sub(r.At))
}

// Overdue reports whether the i-th holder did not renew in time. A holder renews at a
// third of its TTL. If less than half of it was left at the read, the holder has failed
// to renew, or does not renew at all, as with a detached lease. The age of the view does
// not matter.
func (r *Row) Overdue(i int) bool {
	h := &r.Holders[i]
	return !h.Released && h.ExpiresIn < r.TTLs[i]/2
}

// AnyOverdue reports whether any holder did not renew in time.
func (r *Row) AnyOverdue() bool {
	for i := range r.Holders {
		if r.Overdue(i) {
			return true
		}
	}
	return false
}

// Closed returns the time for which the name stays closed.
func (r *Row) Closed(now time.Time) time.Duration { return max(0, r.ClosedFor-now.Sub(r.At)) }

// Since returns the time since t, a time on the backend's clock.
func (v *View) Since(t, now time.Time) time.Duration { return max(0, now.Add(v.Offset).Sub(t)) }

// Held returns the time for which the longest holder has held the name, or 0 without
// holders.
func (v *View) Held(r *Row, now time.Time) (longest time.Duration) {
	for i := range r.Holders {
		longest = max(longest, v.Since(r.Holders[i].Since, now))
	}
	return longest
}

// Waits returns the time for which the longest waiter has waited, or 0 without waiters.
func (v *View) Waits(r *Row, now time.Time) (longest time.Duration) {
	for i := range r.Waiters {
		longest = max(longest, v.Since(r.Waiters[i].Since, now))
	}
	return longest
}

// KindWords returns the kind of a claim, or the number of its permits and the limit.
func KindWords(weight, limit int) string {
	if k := driver.KindOf(weight, limit); k != driver.KindPermits {
		return string(k)
	}
	return fmt.Sprintf("%d of %d", weight, limit)
}

// Unsupported reports whether the backend cannot list its names.
func (v *View) Unsupported() bool { return errors.Is(v.Err, errors.ErrUnsupported) }
