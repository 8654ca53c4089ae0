package keepalive

import (
	"sync"
	"time"
)

// Dispatch decides which renewals are sent now, and in which batches, so that a name, a
// node or a backend that hangs costs no other lease. Leases that were always answered go
// in large batches. Leases of a batch without an answer go in smaller and smaller
// batches, in a class of their own, until the lease that hangs is alone. From then on it
// goes in a third class.
//
// After youngFlight a batch counts only for the larger of two limits on the batches under
// way, because a batch that hangs hardly burdens the backend.
//
// Leases with a short TTL have classes of their own. There is no time to find the lease
// that hangs among hundreds, or to wait for the requests of longer leases.
type Dispatch[T any] struct {
	mu          sync.Mutex           // protects all below
	healthy     [spans][]T           // leases in the classes of those that were answered
	lines       [classes][]inLine[T] // leases in the other classes
	flights     map[*Flight]struct{}
	lastAnswer  time.Time // when the backend last answered, as far as is known
	retryFailed bool      // the last batch of leases without an answer failed again
	nextRetry   time.Time // when the next batch of such leases may go
}

type inLine[T any] struct {
	x     T
	group int
}

// Health is the state of one lease in Dispatch. The zero value is a lease that was
// answered.
type Health struct {
	group int16 // the largest size of its batch; 0 means Batch
	alone bool  // it failed in a batch of its own
}

// Flight is one batch under way.
type Flight struct {
	class int
	n     int
	sent  time.Time
}

const (
	// Batch is the largest number of leases in one request, so that a backend holds its
	// lock for a few ms at most.
	Batch = 256
	// Flights is the largest number of requests under way for the leases of one span.
	Flights = 96 + 128 + 16

	healths = 3 // classes of a span: answered so far, not answered, not answered alone
	spans   = 3 // groups of TTLs, see span
	classes = spans * healths

	youngFlight    = 20 * time.Millisecond // the age up to which a batch may still be answered soon
	failedPause    = 20 * time.Millisecond // between two failures, in the classes of leases without an answer
	silentFor      = 5 * time.Second       // the time without any answer after which the backend seems to be down
	splitWhileDown = 64                    // how many leases are still split up while nothing at all is answered
)

var (
	maxFlights      = [healths]int{96, 128, 16} // the most batches under way in a class, by health
	maxYoungFlights = [healths]int{4, 16, 4}    // the most of these that were sent within youngFlight
)

// span groups TTLs: below a second, below ten, and longer ones.
func span(ttl time.Duration) int {
	switch {
	case ttl < time.Second:
		return 0
	case ttl < 10*time.Second:
		return 1
	}
	return 2
}

func isHealthy(class int) bool { return class%healths == 0 }

// Again reports whether the leases of the batch were asked for before, without an answer.
func (f *Flight) Again() bool { return !isHealthy(f.class) }

// OK reports whether the lease was answered.
func (h Health) OK() bool { return h.group == 0 }

// Split reports whether Dispatch is finding out whether this lease is the one that hangs.
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

// Add queues a lease for its renewal. ttl is the time for which the renewal makes it
// last.
func (l *Dispatch[T]) Add(x T, ttl time.Duration, h Health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := span(ttl)
	if h.OK() { // the usual case
		l.healthy[s] = append(l.healthy[s], x)
		return
	}
	class := s*healths + h.class()
	l.lines[class] = append(l.lines[class], inLine[T]{x, int(h.group)})
}

// waitingLocked returns the number of leases that wait in a class.
func (l *Dispatch[T]) waitingLocked(class int) int {
	if isHealthy(class) {
		return len(l.healthy[class/healths])
	}
	return len(l.lines[class])
}

// Take returns a batch to send now; the caller must pass it to Landed. If there is none,
// wait is the time until there may be one; negative means not before Add or Landed.
func (l *Dispatch[T]) Take(now time.Time) (batch []T, f *Flight, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = -1
	for class := range classes {
		if l.waitingLocked(class) == 0 {
			continue
		}
		switch w := l.untilRoomLocked(class, now); {
		case w == 0:
			return l.takeLocked(class, now)
		case w > 0 && (wait < 0 || w < wait):
			wait = w
		}
	}
	return nil, nil, wait
}

// untilRoomLocked returns the time until another batch may go: 0 is now, and negative
// means not before one lands.
func (l *Dispatch[T]) untilRoomLocked(class int, now time.Time) time.Duration {
	all, young, first := 0, 0, time.Duration(0)
	for f := range l.flights {
		if f.class != class {
			continue
		}
		all++
		if left := youngFlight - now.Sub(f.sent); left > 0 {
			young++
			if first == 0 || left < first {
				first = left
			}
		}
	}
	switch rest := l.nextRetry.Sub(now); {
	case all >= maxFlights[class%healths]:
		return -1
	case young >= maxYoungFlights[class%healths]:
		return first
	case !isHealthy(class) && rest > 0:
		return rest
	}
	return 0
}

// takeLocked takes a batch from the head of a line.
func (l *Dispatch[T]) takeLocked(class int, now time.Time) ([]T, *Flight, time.Duration) {
	batch := l.batchLocked(class)
	if !isHealthy(class) && l.retryFailed {
		l.nextRetry = now.Add(failedPause)
	}
	f := &Flight{class: class, n: len(batch), sent: now}
	if l.flights == nil {
		l.flights = map[*Flight]struct{}{}
	}
	l.flights[f] = struct{}{}
	return batch, f, 0
}

// batchLocked takes the leases that go together off the head of a line.
func (l *Dispatch[T]) batchLocked(class int) (batch []T) {
	if isHealthy(class) {
		well := &l.healthy[class/healths]
		n := min(len(*well), Batch)
		batch = (*well)[:n:n]
		if *well = (*well)[n:]; len(*well) == 0 {
			*well = nil // otherwise its array would keep the leases that were sent
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

// Landed notes that a batch is no longer under way, and whether it was answered. It
// returns whether any lease waits.
func (l *Dispatch[T]) Landed(f *Flight, now time.Time, answered bool) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, f)
	switch {
	case answered:
		l.retryFailed, l.nextRetry = false, time.Time{}
		l.lastAnswer = later(l.lastAnswer, now)
	case f.Again() && now.Sub(f.sent) < youngFlight: // a batch that hangs needs no pause: it takes its time anyway
		l.retryFailed, l.nextRetry = true, now.Add(failedPause)
	}
	for class := range classes {
		more = more || l.waitingLocked(class) > 0
	}
	return more
}

// Alive notes that the backend answered some other request.
func (l *Dispatch[T]) Alive(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastAnswer = later(l.lastAnswer, now)
}

func later(t, u time.Time) time.Time {
	if u.After(t) {
		return u
	}
	return t
}

// Failed returns the new health of a lease, if n leases of its batch, itself included,
// got no answer: it goes in a batch an eighth as large. If nothing at all was answered
// for silentFor, the backend seems to be down, and only splitWhileDown leases at a time
// are split further. split is the number of leases that are split now.
func (l *Dispatch[T]) Failed(f *Flight, n, split int, h Health) Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case split >= splitWhileDown && l.lastAnswer.Before(f.sent.Add(-silentFor)) && !h.Split() && !h.alone:
		return Health{group: Batch / 8}
	case n == 1:
		return Health{group: 1, alone: f.n == 1}
	}
	if n <= 16 {
		return Health{group: 1}
	}
	return Health{group: int16((n + 7) / 8)}
}

// Rest takes out all leases that wait.
func (l *Dispatch[T]) Rest() (all []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, well := range l.healthy {
		all = append(all, well...)
		l.healthy[i] = nil
	}
	for i, line := range l.lines {
		for _, r := range line {
			all = append(all, r.x)
		}
		l.lines[i] = nil
	}
	return all
}
