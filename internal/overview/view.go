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

// A View is all that was seen at one time. It never changes, and everybody shares it:
// what is in it is read only.
type View struct {
	Rows    []*Row    // in byte order of their names
	Damaged []Damage  // names that could not be read
	More    bool      // there are more names than a view has
	Looked  time.Time // when Rows were read, all of them; zero before the first look

	// Err is why the last look failed, and ErrSince when looks began to: then Rows are
	// those of the last one that did not. nil if all is well.
	Err      error
	ErrSince time.Time

	Push       bool          // changes of what is shown are pushed; if not, they are seen by the next look
	Took       time.Duration // how long the last look took
	Pace       time.Duration // the pause until the next one
	Properties pawl.Properties

	// Offset is by how much the backend's clock is ahead of this process's, as far as
	// that shows; 0 where nothing speaks against it.
	Offset time.Duration

	*pages
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

// list reads all entries. An error that concerns one name is kept with it.
func (v *View) list(ctx context.Context, c *pawl.Client, prefix string) error {
	for e, err := range c.List(ctx, prefix) {
		switch {
		case err != nil && e.Name == "":
			return err
		case err != nil:
			v.Damaged = append(v.Damaged, Damage{e.Name, err})
		case len(v.Rows) == mostNames:
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
	c.Rows, c.pages = slices.Clone(v.Rows), &pages{}
	return &c
}

// put adds an entry, or replaces it, or takes it out if there is nothing left of it.
func (v *View) put(e pawl.Entry, at time.Time) {
	i, found := v.find(e.Name)
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

// Row is that of a name, or nil if nobody uses it.
func (v *View) Row(name string) *Row {
	if i, found := v.find(name); found {
		return v.Rows[i]
	}
	return nil
}

func (v *View) find(name string) (int, bool) {
	return slices.BinarySearchFunc(v.Rows, name, func(r *Row, name string) int { return strings.Compare(r.Name, name) })
}

// inherit gives each lease the longest time that it ever had left, which is its TTL as
// far as anybody can see.
func (v *View) inherit(last *View) {
	for _, r := range v.Rows {
		if r.TTLs != nil {
			continue // it is last's own
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

// holder is the place of the lease with a fence, or -1.
func (r *Row) holder(fence uint64) int {
	return slices.IndexFunc(r.Holders, func(h pawl.Holder) bool { return h.Fence == fence })
}

// Left is how much time the i-th holder has left at a time, if it was not renewed since
// it was read.
func (r *Row) Left(i int, now time.Time) time.Duration {
	return max(0, r.Holders[i].ExpiresIn-now.Sub(r.At))
}

// Overdue reports whether the i-th holder was not renewed in time. A holder renews at a
// third of its TTL; one that had less than half of it left when it was read has failed to
// at least once, or does not renew at all, as a lease that is left to another process. It
// goes by what was read, never by how long ago that is.
func (r *Row) Overdue(i int) bool {
	h := &r.Holders[i]
	return !h.Released && h.ExpiresIn < r.TTLs[i]/2
}

// AnyOverdue reports whether one of the holders was not renewed in time.
func (r *Row) AnyOverdue() bool {
	for i := range r.Holders {
		if r.Overdue(i) {
			return true
		}
	}
	return false
}

// Closed is for how much longer nothing is granted.
func (r *Row) Closed(now time.Time) time.Duration { return max(0, r.ClosedFor-now.Sub(r.At)) }

// Since is how long ago something was, by the backend's clock.
func (v *View) Since(t, now time.Time) time.Duration { return max(0, now.Add(v.Offset).Sub(t)) }

// Held is for how long the name has been held: by whom holds it longest. 0 if nobody
// does.
func (v *View) Held(r *Row, now time.Time) (longest time.Duration) {
	for i := range r.Holders {
		longest = max(longest, v.Since(r.Holders[i].Since, now))
	}
	return longest
}

// Waits is for how long somebody has been waiting: who waits longest. 0 if nobody does.
func (v *View) Waits(r *Row, now time.Time) (longest time.Duration) {
	for i := range r.Waiters {
		longest = max(longest, v.Since(r.Waiters[i].Since, now))
	}
	return longest
}

// The kinds of claims.
const (
	Exclusive = "exclusive"
	Shared    = "shared"
	Permits   = "permits"
)

// Kind is the kind of a claim, in one word.
func Kind(weight, limit int) string {
	switch {
	case weight == driver.Exclusive:
		return Exclusive
	case limit == driver.Unlimited:
		return Shared
	}
	return Permits
}

// KindWords are the kind of a claim, and of a permit how many it takes.
func KindWords(weight, limit int) string {
	if k := Kind(weight, limit); k != Permits {
		return k
	}
	return fmt.Sprintf("%d of %d", weight, limit)
}

// Unsupported reports whether the backend cannot list its names.
func (v *View) Unsupported() bool { return errors.Is(v.Err, errors.ErrUnsupported) }
