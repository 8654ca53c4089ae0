package keepalive

import (
	"sync"
	"time"
)

// Dispatch decides which renewals go out now, and in which batches, so that a name, a
// node or a backend that hangs costs nobody else a lease. What has been answered so far
// goes in large batches. Those of a batch that was not answered go in smaller and smaller
// ones, beside the others, until the one that hangs is alone; and then it goes beside
// both.
//
// A batch that is under way for a while counts no more among those that may be under way
// at once: there is little to fear for a backend that does not answer.
//
// Leases of a short TTL have classes of their own. They have no time to find out which
// one hangs among hundreds that have it, nor to wait until requests for those have ended.
type Dispatch[T any] struct {
	mu      sync.Mutex           // protects all below
	well    [spans][]T           // those in the classes of what has been answered
	lines   [classes][]inLine[T] // those in the others
	flights map[*Flight]struct{}
	good    time.Time // when the backend answered last, as far as that was told
	bad     bool      // the last that was asked for again failed once more
	rest    time.Time // when the next of those may go
}

type inLine[T any] struct {
	x     T
	group int
}

// Health is what Dispatch knows of one lease. The zero value is that of one that was
// answered.
type Health struct {
	group int16 // the largest batch that it goes in; 0 is Batch
	alone bool  // it failed in a batch of its own
}

// Flight is one batch under way.
type Flight struct {
	class int
	n     int
	sent  time.Time
}

const (
	// Batch is how many leases go in one request: a backend holds its lock for a few ms
	// at most.
	Batch = 256
	// Flights is how many requests are under way at most for the leases of one span.
	Flights = 96 + 128 + 16

	healths = 3 // classes of a span: answered so far, not answered, not answered alone
	spans   = 3 // of TTLs
	classes = spans * healths

	lately = 20 * time.Millisecond
	paced  = 20 * time.Millisecond // between two that fail, in the class of those that failed
	while  = 5 * time.Second
	few    = 64 // leases that are split up further though nothing at all is answered
)

var (
	most   = [healths]int{96, 128, 16} // under way in each class
	atOnce = [healths]int{4, 16, 4}    // of those, sent lately
)

// span is which TTLs are treated alike: below a second, below ten, and longer ones.
func span(ttl time.Duration) int {
	switch {
	case ttl < time.Second:
		return 0
	case ttl < 10*time.Second:
		return 1
	}
	return 2
}

func isWell(class int) bool { return class%healths == 0 }

// Again reports whether those in it were asked for before, and not answered.
func (f *Flight) Again() bool { return !isWell(f.class) }

// OK reports whether it was answered.
func (h Health) OK() bool { return h.group == 0 }

// Split reports whether it is about to be found out whether the lease itself is the one
// that hangs.
func (h Health) Split() bool { return h.group > 0 && h.group < Batch/8 && !h.alone }

func (h Health) class() int {
	switch {
	case h.group == 0:
		return 0
	case !h.alone:
		return 1
	}
	return 2
}

// Add puts a lease in line that is to last that long.
func (l *Dispatch[T]) Add(x T, ttl time.Duration, h Health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := span(ttl)
	if h.OK() { // as most are
		l.well[s] = append(l.well[s], x)
		return
	}
	class := s*healths + h.class()
	l.lines[class] = append(l.lines[class], inLine[T]{x, int(h.group)})
}

// standingLocked is how many stand in a class.
func (l *Dispatch[T]) standingLocked(class int) int {
	if isWell(class) {
		return len(l.well[class/healths])
	}
	return len(l.lines[class])
}

// Take returns a batch that is to be sent now, and is told to Landed. If there is none it
// says how long it is until there may be one; negative means not before something is
// added or lands.
func (l *Dispatch[T]) Take(now time.Time) (batch []T, f *Flight, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = -1
	for class := range classes {
		if l.standingLocked(class) == 0 {
			continue
		}
		switch w := l.roomLocked(class, now); {
		case w == 0:
			return l.takeLocked(class, now)
		case w > 0 && (wait < 0 || w < wait):
			wait = w
		}
	}
	return nil, nil, wait
}

// roomLocked is how long it is until another batch may go; 0 is now, and negative when
// one lands.
func (l *Dispatch[T]) roomLocked(class int, now time.Time) time.Duration {
	all, young, first := 0, 0, time.Duration(0)
	for f := range l.flights {
		if f.class != class {
			continue
		}
		all++
		if left := lately - now.Sub(f.sent); left > 0 {
			young++
			if first == 0 || left < first {
				first = left
			}
		}
	}
	switch rest := l.rest.Sub(now); {
	case all >= most[class%healths]:
		return -1
	case young >= atOnce[class%healths]:
		return first
	case !isWell(class) && rest > 0:
		return rest
	}
	return 0
}

// takeLocked takes a batch from the head of a line.
func (l *Dispatch[T]) takeLocked(class int, now time.Time) ([]T, *Flight, time.Duration) {
	batch := l.batchLocked(class)
	if !isWell(class) && l.bad {
		l.rest = now.Add(paced)
	}
	f := &Flight{class: class, n: len(batch), sent: now}
	if l.flights == nil {
		l.flights = map[*Flight]struct{}{}
	}
	l.flights[f] = struct{}{}
	return batch, f, 0
}

// batchLocked takes those off the head of a line that go together.
func (l *Dispatch[T]) batchLocked(class int) (batch []T) {
	if isWell(class) {
		well := &l.well[class/healths]
		n := min(len(*well), Batch)
		batch = (*well)[:n:n]
		if *well = (*well)[n:]; len(*well) == 0 {
			*well = nil // its array would keep those that were sent
		}
		return batch
	}
	line := l.lines[class]
	n, group := 0, line[0].group
	for n < len(line) && n < group {
		batch = append(batch, line[n].x)
		if n++; n < len(line) && line[n].group < group {
			group = line[n].group
		}
	}
	if l.lines[class] = line[n:]; n == len(line) {
		l.lines[class] = nil
	}
	return batch
}

// Landed notes that a batch is under way no more, and whether it was answered. It answers
// whether anything stands in line.
func (l *Dispatch[T]) Landed(f *Flight, now time.Time, answered bool) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, f)
	switch {
	case answered:
		l.bad, l.rest = false, time.Time{}
		l.good = later(l.good, now)
	case f.Again() && now.Sub(f.sent) < lately: // what hangs takes its time anyway
		l.bad, l.rest = true, now.Add(paced)
	}
	for class := range classes {
		more = more || l.standingLocked(class) > 0
	}
	return more
}

// Alive notes that the backend answered something else.
func (l *Dispatch[T]) Alive(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.good = later(l.good, now)
}

func later(t, u time.Time) time.Time {
	if u.After(t) {
		return u
	}
	return t
}

// Failed is the health of a lease that was not answered, as n in its batch were not: it
// goes in one an eighth as large. If nothing at all was answered for a while the backend
// is down, as it seems, and only a few are looked at more closely at a time. split is how
// many are.
func (l *Dispatch[T]) Failed(f *Flight, n, split int, h Health) Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case split >= few && l.good.Before(f.sent.Add(-while)) && !h.Split() && !h.alone:
		return Health{group: Batch / 8}
	case n == 1:
		return Health{group: 1, alone: f.n == 1}
	}
	if n <= 16 {
		return Health{group: 1}
	}
	return Health{group: int16((n + 7) / 8)}
}

// Rest takes out all that stand in line.
func (l *Dispatch[T]) Rest() (all []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, well := range l.well {
		all = append(all, well...)
		l.well[i] = nil
	}
	for i, line := range l.lines {
		for _, r := range line {
			all = append(all, r.x)
		}
		l.lines[i] = nil
	}
	return all
}
