// Package backoff computes the pauses of the whole project: how they grow, and how chance
// keeps clients from retrying at the same time. Wait waits for a pause.
package backoff

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Doubled is first, doubled n times, and no more than most.
func Doubled(first time.Duration, n int, most time.Duration) time.Duration {
	for range n {
		if first >= most/2 {
			return most
		}
		first *= 2
	}
	return min(first, most)
}

// Halfway is first, half as much again n times, and no more than most. It is for a client
// that polls for an event, and notices it late by about half of the wait at most.
func Halfway(first time.Duration, n int, most time.Duration) time.Duration {
	for range n {
		if first >= most/3*2 {
			return most
		}
		first += first / 2
	}
	return min(first, most)
}

// Below is a random time from 0 to less than d; 0 if d is not above 0.
func Below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(Number(uint64(d)))
}

// Number is a random number from 0 to less than n, which is above 0.
func Number(n uint64) uint64 {
	if s := seeded.Load(); s != nil {
		return s.below(n)
	}
	return rand.Uint64N(n)
}

// Early is d or up to a half of it sooner: never later than d.
func Early(d time.Duration) time.Duration { return d - Below(d/2) }

// Around is a half to one and a half of d.
func Around(d time.Duration) time.Duration { return d/2 + Below(d) }

// Late is d or up to as much again: never sooner than d.
func Late(d time.Duration) time.Duration { return d + Below(d) }

// seeded is the source of chance if a test has called Seed; otherwise nil.
var seeded atomic.Pointer[source]

type source struct {
	mu     sync.Mutex // protects random
	random *rand.Rand
}

func (s *source) below(n uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Uint64N(n)
}

// Seed makes the pauses of the whole process the same each time, for a test that repeats
// its steps, until stop is called.
func Seed(seed uint64) (stop func()) {
	seeded.Store(&source{random: rand.New(rand.NewPCG(seed, 0))})
	return func() { seeded.Store(nil) }
}
