package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice draw a schedule from a seed or from a fuzzer's bytes. After the last byte, they
// continue from a seed that depends on the bytes.
type dice struct {
	bytes  []byte
	random *rand.Rand
}

func diceOf(seed uint64) *dice { return &dice{random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} }

func diceFrom(b []byte) *dice {
	h := fnv.New64a()
	_, _ = h.Write(b)
	d := diceOf(h.Sum64())
	d.bytes = b
	return d
}

// below draws from 0 to n-1. A small number uses one byte of a fuzzer, so that the fuzzer
// can change one thing at a time.
func (d *dice) below(n int) int {
	if n <= 1 {
		return 0
	}
	take := 1
	if n > 256 {
		take = 4
	}
	if len(d.bytes) < take {
		return d.random.IntN(n)
	}
	v := 0
	for _, b := range d.bytes[:take] {
		v = v<<8 | int(b)
	}
	d.bytes = d.bytes[take:]
	return v % n
}

// chance is true with a probability of percent.
func (d *dice) chance(percent int) bool { return d.below(100) < percent }

// between draws a duration from low to high, in steps so fine that two moments are seldom
// the same.
func (d *dice) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	const steps = 1 << 20
	return low + time.Duration(float64(high-low)*float64(d.below(steps))/steps)
}

// oneOf draws one of the values.
func oneOf[T any](d *dice, of ...T) T { return of[d.below(len(of))] }
