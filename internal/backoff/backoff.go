// Package backoff computes the pauses of the whole project. They grow, and are random, so
// that clients do not retry at the same time. Wait waits for a pause.
package backoff

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Doubled returns first, doubled n times, and no more than most.
func Doubled(first time.Duration, n int, most time.Duration) time.Duration {
	for range n {
		if first >= most/2 {
			return most
		}
		first *= 2
	}
	return min(first, most)
}

// GrownByHalf returns first, increased by half n times, and no more than most. A client
// that polls with it notices an event late by about half of the wait at most.
func GrownByHalf(first time.Duration, n int, most time.Duration) time.Duration {
	for range n {
		if first >= most/3*2 {
			return most
		}
		first += first / 2
	}
	return min(first, most)
}

// Random returns a random time from 0 to less than d; 0 if d is not above 0.
func Random(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(RandomN(uint64(d)))
}

// RandomN returns a random number from 0 to less than n, which is above 0.
func RandomN(n uint64) uint64 {
	if s := seeded.Load(); s != nil {
		return s.below(n)
	}
	return rand.Uint64N(n)
}

// JitterDown returns d, or up to a half of it less: never more than d.
func JitterDown(d time.Duration) time.Duration { return d - Random(d/2) }

// Jitter returns a half to one and a half of d.
func Jitter(d time.Duration) time.Duration { return d/2 + Random(d) }

// JitterUp returns d, or up to twice as much: never less than d.
func JitterUp(d time.Duration) time.Duration { return d + Random(d) }

// seeded is the source of random numbers after a call of Seed; otherwise nil.
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

// Seed makes the pauses of the whole process repeatable until stop is called, for a test
// that repeats its steps.
func Seed(seed uint64) (stop func()) {
	seeded.Store(&source{random: rand.New(rand.NewPCG(seed, 0))})
	return func() { seeded.Store(nil) }
}
