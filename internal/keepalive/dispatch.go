package keepalive

import (
	"slices"
	"time"
)

// Dispatch decides which renewals are sent now, and in which batches, so that a name or a
// node that hangs does not delay other leases. Leases that were answered go in large
// batches. After a batch without an answer, its leases go in small batches, and then
// alone. Each of these stages is a class. A lease that got no answer alone stays in the
// last class until it is answered.
//
// Two limits bound the batches under way: a small one for batches younger than youngAge,
// and a large one for all, because a batch that hangs hardly burdens the backend.
//
// Leases with a short TTL have their own classes, because they have no time to wait for
// the requests of other leases.
type Dispatch[T any] struct {
	queues    [classCount][]T      // the leases that wait, by class
	batches   [classCount][]*Batch // the batches under way, by class, in the order of sending
	nextRetry time.Time            // after a failed retry, the earliest time of the next one; zero after an answer
}

// Health is the state of one lease in Dispatch.
type Health uint8

const (
	Normal    Health = iota // it was answered
	Suspect                 // its batch got no answer
	SentAlone               // it is sent alone: its small batch got no answer, or the answer had an error for it
	Hanging                 // it got no answer alone

	healthCount = 4
)

// Batch is one request under way.
type Batch struct {
	class  int
	health Health // the health of its leases
	size   int
	sent   time.Time
}

const (
	// BatchSize is the largest number of leases in one request, so that a backend holds
	// its lock for a few ms at most.
	BatchSize = 256

	ttlGroups  = 3 // see ttlGroup
	classCount = ttlGroups * healthCount

	youngAge     = 20 * time.Millisecond // a younger batch may still be answered soon
	failurePause = 20 * time.Millisecond // the pause between two failed retries
	maxAlone     = 64                    // the number of leases that go alone while the backend answers nothing
)

// The limits of a class, by health.
var (
	batchSizes = [healthCount]int{BatchSize, 16, 1, 1}
	maxBatches = [healthCount]int{96, 64, 64, 16} // batches under way
	maxYoung   = [healthCount]int{4, 8, 8, 4}     // batches under way that are younger than youngAge
)

// ttlGroup groups TTLs: below a second, below ten, and longer ones.
func ttlGroup(ttl time.Duration) int {
	switch {
	case ttl < time.Second:
		return 0
	case ttl < 10*time.Second:
		return 1
	}
	return 2
}

// Add queues a lease for its renewal, which makes the lease last for ttl.
func (d *Dispatch[T]) Add(x T, ttl time.Duration, h Health) {
	queue := &d.queues[ttlGroup(ttl)*healthCount+int(h)]
	*queue = append(*queue, x)
}

// Take returns leases to send now; the caller must pass their batch to Done. If there are
// none, wait is the time until Take may return some. A negative wait means: after the
// next Add or Done.
func (d *Dispatch[T]) Take(now time.Time) (leases []T, b *Batch, wait time.Duration) {
	wait = -1
	for class := range d.queues {
		if len(d.queues[class]) == 0 {
			continue
		}
		switch w := d.timeUntilRoom(class, now); {
		case w == 0:
			leases, b = d.take(class, now)
			return leases, b, 0
		case w > 0 && (wait < 0 || w < wait):
			wait = w
		}
	}
	return nil, nil, wait
}

// timeUntilRoom returns the time until another batch of the class may be sent. 0 means
// now; a negative time means after the next Done.
func (d *Dispatch[T]) timeUntilRoom(class int, now time.Time) time.Duration {
	health, batches := class%healthCount, d.batches[class]
	if len(batches) >= maxBatches[health] {
		return -1
	}
	if i := len(batches) - maxYoung[health]; i >= 0 {
		if left := youngAge - now.Sub(batches[i].sent); left > 0 { // batches[i] and those behind it are young
			return left
		}
	}
	if health == int(Normal) {
		return 0
	}
	return max(0, d.nextRetry.Sub(now))
}

func (d *Dispatch[T]) take(class int, now time.Time) ([]T, *Batch) {
	queue, health := &d.queues[class], Health(class%healthCount)
	size := min(len(*queue), batchSizes[health])
	leases := (*queue)[:size:size]
	if *queue = (*queue)[size:]; len(*queue) == 0 {
		*queue = nil // so that its array does not keep the sent leases alive
	}
	if health != Normal && !d.nextRetry.IsZero() {
		d.nextRetry = now.Add(failurePause)
	}
	b := &Batch{class: class, health: health, size: size, sent: now}
	d.batches[class] = append(d.batches[class], b)
	return leases, b
}

// Done ends a batch, and reports whether more leases wait.
func (d *Dispatch[T]) Done(b *Batch, now time.Time, answered bool) (more bool) {
	d.remove(b)
	switch {
	case answered:
		d.nextRetry = time.Time{}
	case b.health != Normal && now.Sub(b.sent) < youngAge: // no pause after a batch that took long
		d.nextRetry = now.Add(failurePause)
	}
	for _, queue := range d.queues {
		more = more || len(queue) > 0
	}
	return more
}

func (d *Dispatch[T]) remove(b *Batch) {
	d.batches[b.class] = slices.DeleteFunc(d.batches[b.class], func(x *Batch) bool { return x == b })
}

// IsRetry reports whether the batch is a retry, after requests without an answer.
func (b *Batch) IsRetry() bool { return b.health != Normal }

// HealthAfterFailure returns the new health of a lease that was not renewed. n is 1 if
// its request was answered, and otherwise the size of the request. alone is the number of
// leases that go alone now. If the backend is down, only maxAlone leases go alone.
func (b *Batch) HealthAfterFailure(n, alone int, down bool) Health {
	switch {
	case b.size == 1:
		return Hanging
	case n > 1 && (b.health == Normal || down && alone >= maxAlone):
		return Suspect
	}
	return SentAlone
}
