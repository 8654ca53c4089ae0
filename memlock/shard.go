package memlock

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl/locktable"
)

// A shard has the entries of the names that hash to it. There are several shards, so that
// goroutines with different names seldom wait for each other. The zero value is empty.
type shard struct {
	mu        sync.Mutex
	entries   map[string]*entry
	spare     *entry   // a forgotten entry, for the next name, because most names are held only for a moment
	floor     uint64   // the highest fence of the forgotten entries
	sweepList []*entry // the entries that sweepLocked checks, the oldest first
	next      int      // the index in sweepList of the next entry to check
	steps     int      // the number of steps so far
	_         [64]byte // keeps two shards out of one cache line
}

type entry struct {
	locktable.Entry
	name      string
	forgotten bool // it was deleted; the name may have a new entry
}

// sweepEvery is the number of steps on a shard between two sweeps.
const sweepEvery = 16

// step runs f on the entry of a step. It returns the signals of the step, and whether it
// made a visible change.
func (s *shard) step(ctx context.Context, i int, step *locktable.Step, clock func() time.Time, f func(i int, e *locktable.Entry, now locktable.Instant)) (signals []locktable.Signal, visible bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.HasEnd && ctx.Err() != nil { // checked under the mutex, because the wait for it is over
		return nil, false, ctx.Err()
	}
	e := s.entryLocked(step.Name)
	now := locktable.At(clock())
	f(i, &e.Entry, now)
	signals, visible = s.endStepLocked(e, now)
	return signals, visible, nil
}

// entryLocked finds the entry of a name, or makes one.
func (s *shard) entryLocked(name string) *entry {
	if e := s.entries[name]; e != nil {
		return e
	}
	return s.newEntryLocked(name)
}

// endStepLocked ends a step on an entry. It returns the results of step.
func (s *shard) endStepLocked(e *entry, now locktable.Instant) (signals []locktable.Signal, visible bool) {
	if isForgettable(e, now) {
		s.forgetLocked(e)
	}
	s.sweepLocked(now)
	if len(e.Signals) == 0 {
		return nil, e.Visible
	}
	return slices.Clone(e.Signals), e.Visible
}

// read copies the entry of a name. The copy is empty if the shard has no entry.
func (s *shard) read(name string, clock func() time.Time) (*locktable.Entry, locktable.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := locktable.Entry{}
	if e := s.entries[name]; e != nil {
		out = e.Entry
		out.Holders, out.Queue = slices.Clone(e.Holders), slices.Clone(e.Queue)
		out.Broken, out.Signals = slices.Clone(e.Broken), nil
	}
	return &out, locktable.At(clock())
}

// appendNames appends the names with a prefix, in no order.
func (s *shard) appendNames(to []string, prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.entries {
		if strings.HasPrefix(name, prefix) {
			to = append(to, name)
		}
	}
	return to
}

// valueRetention is the time for which a shard keeps a value after the write, and after
// the end of the last lease.
const valueRetention = 24 * time.Hour

// isForgettable reports whether the shard may delete an entry. The shard stores the
// highest fence of all deleted entries, so it need not keep each fence.
func isForgettable(e *entry, now locktable.Instant) bool {
	return e.Idle(now) || e.Value.Bytes != nil && e.Forgettable(now, valueRetention)
}

// forgetLocked deletes a forgettable entry.
func (s *shard) forgetLocked(e *entry) {
	s.floor = max(s.floor, e.Fence)
	delete(s.entries, e.name)
	e.forgotten = true
	if last := len(s.sweepList) - 1; last >= s.next && s.sweepList[last] == e {
		s.sweepList, s.spare = s.sweepList[:last], e // usually e is the newest entry, and need not be swept
	}
}

// sweepLocked deletes entries that became idle after their last step: their leases
// expired, or were released in the microsecond of their grant. Every sweepEvery steps it
// checks twice as many entries as can have been added since, the oldest first. So it
// checks every entry at some time.
func (s *shard) sweepLocked(now locktable.Instant) {
	if s.steps++; s.steps%sweepEvery != 0 {
		return
	}
	for range min(2*sweepEvery, len(s.sweepList)-s.next) {
		e := s.sweepList[s.next]
		s.next++
		switch {
		case e.forgotten:
		case isForgettable(e, now):
			s.forgetLocked(e)
		default:
			s.sweepList = append(s.sweepList, e)
		}
	}
	if 2*s.next >= len(s.sweepList) { // usually the list is then empty, and reuses its memory
		s.sweepList, s.next = slices.Delete(s.sweepList, 0, s.next), 0
	}
}

// newEntryLocked returns an empty entry for a name. Beyond their length, its slices have
// elements of an earlier entry, which later steps overwrite.
func (s *shard) newEntryLocked(name string) *entry {
	e := s.spare
	if e == nil {
		e = &entry{}
	}
	s.spare = nil
	*e = entry{Entry: locktable.Entry{Fence: s.floor, Holders: e.Holders[:0], Queue: e.Queue[:0]}, name: name}
	if s.entries == nil {
		s.entries = map[string]*entry{}
	}
	s.entries[name] = e
	s.sweepList = append(s.sweepList, e)
	return e
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.spare, s.floor = nil, nil, 0
	s.sweepList, s.next, s.steps = nil, 0, 0
}
