package redisscript

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// What goes into a script is packed into one string: a script costs Redis more for each argument than for the bytes
// of it. Numbers are doubles, as Lua has no others; they are exact up to 2^53.

// The flags of a claim. A claim with flagPlain alone is exclusive, does not queue, and wants one fence: the quick case
// of acquire.lua.
const (
	flagPlain = 1 << iota
	flagQueue
	flagForce
)

func number(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(float64(v)))
}

// micros rounds up, so that nothing ends early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func claimArg(c *driver.Claim, keep time.Duration) string {
	run, flags := 1, byte(0)
	if c.Weight == driver.All {
		run = max(c.Fences, 1)
		if run == 1 {
			flags |= flagPlain
		}
	}
	if c.Queue {
		flags |= flagQueue
	}
	if c.Force {
		flags |= flagForce
	}
	b := make([]byte, 0, 72)
	b = append(append(b, flags), c.Token[:]...)
	b = number(number(number(b, micros(c.TTL)), micros(c.LockDelay)), micros(keep))
	b = number(number(b, fenceArg(c.MinFence)), micros(c.WaitTTL))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Weight))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Limit))
	return string(binary.BigEndian.AppendUint32(b, uint32(run)))
}

func renewArg(l *driver.Lease, keep time.Duration) string {
	b := make([]byte, 0, 40)
	b = append(b, l.Token[:]...)
	return string(number(number(b, micros(l.TTL)), micros(keep)))
}

func releaseArg(l *driver.Lease, keep time.Duration) string {
	b := make([]byte, 0, 40)
	b = append(b, l.Token[:]...)
	return string(number(number(b, micros(l.Linger)), micros(keep)))
}

// fenceArg is a fence that a script can name: there are none from 2^52 on.
func fenceArg(fence uint64) int64 { return int64(min(fence, 1<<52)) }

func raiseArg(l *driver.Lease, fence uint64, keep time.Duration) string {
	b := make([]byte, 0, 40)
	b = append(b, l.Token[:]...)
	return string(number(number(b, fenceArg(fence)), micros(keep)))
}

func breakArg(fence uint64, delay, keep time.Duration) string {
	b := make([]byte, 0, 24)
	b = number(b, fenceArg(fence))
	return string(number(number(b, micros(delay)), micros(keep)))
}

// who is what is stored of who claims: the two channels on which its signals are awaited, then the owner. The
// scripts look at the channels only.
func who(box, shard string, o *driver.Owner) string {
	b := make([]byte, 0, 64+len(box)+len(shard))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(box))), box...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(shard))), shard...)
	return string(appendOwner(b, o))
}

func appendOwner(b []byte, o *driver.Owner) []byte {
	b = appendString(b, o.Client)
	b = appendString(b, o.Host)
	b = binary.AppendUvarint(b, uint64(o.PID))
	b = binary.AppendUvarint(b, uint64(len(o.Labels)))
	if len(o.Labels) == 0 {
		return b // mostly, and then nothing is allocated
	}
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		b = appendString(appendString(b, k), o.Labels[k])
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
