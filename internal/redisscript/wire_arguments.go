package redisscript

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// What goes into a script is packed into one string: a script costs Redis more for each argument than for the bytes
// of it. Numbers are doubles, as Lua has no others; they are exact up to 2^53.

// What the first argument of a step begins with.
const (
	quickAcquire = 'a' // an exclusive claim that is not forced
	otherAcquire = 'A'
	quickRenew   = 'r'
	quickRelease = 'e' // without a minimum hold
	otherRelease = 'E'
	timedRelease = 'O' // with an end
)

func number(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(float64(v)))
}

// micros rounds up, so that nothing ends early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// quick reports whether a claim may be granted by quick_acquire.lua.
func quick(c *driver.Claim) bool { return c.Weight == driver.Exclusive && !c.Force }

// run is how many fences a claim is granted.
func run(c *driver.Claim) int {
	if c.Weight == driver.Exclusive {
		return max(c.Fences, 1)
	}
	return 1
}

// claimArg ends with what is stored of an exclusive holder as it is: the number of fences, the token, the lock-delay and who. end is on
// the server's clock.
func claimArg(c *driver.Claim, keep time.Duration, end int64, who string) string {
	var room [256]byte // mostly enough, and then only the string is allocated
	b := room[:1]
	if b[0] = otherAcquire; quick(c) {
		b[0] = quickAcquire
	}
	keep = max(keep, c.TTL+c.LockDelay)
	b = number(number(number(number(b, micros(c.TTL)), micros(keep)), fenceArg(c.MinFence)), end)
	b = append(binary.BigEndian.AppendUint32(b, uint32(run(c))), c.Token[:]...)
	return string(append(number(b, micros(c.LockDelay)), who...))
}

// waitArg is what is needed of a claim that is not granted quickly.
func waitArg(c *driver.Claim) string {
	b := make([]byte, 1, 25)
	if c.Queue {
		b[0] = 1
	}
	b = number(b, micros(c.QueueTTL))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(c.Weight)), uint32(c.Limit))
	return string(number(b, fenceArg(c.Ticket)))
}

func renewArg(l *driver.LeaseRef, keep time.Duration) string {
	b := append(make([]byte, 0, 33), quickRenew)
	return string(append(number(number(b, micros(l.TTL)), micros(keep)), l.Token[:]...))
}

func releaseArg(l *driver.LeaseRef, keep time.Duration, end int64) string {
	b := append(make([]byte, 0, 41), quickRelease)
	switch {
	case l.OnTime:
		b[0] = timedRelease
	case l.MinHold > 0:
		b[0] = otherRelease
	}
	b = append(number(number(b, micros(l.MinHold)), micros(keep)), l.Token[:]...)
	if l.OnTime {
		b = number(b, end)
	}
	return string(b)
}

// fenceArg is a fence that a script can name: there are none from 2^52 on.
func fenceArg(fence uint64) int64 { return int64(min(fence, 1<<52)) }

func raiseArg(l *driver.LeaseRef, fence uint64, keep time.Duration) string {
	b := make([]byte, 0, 40)
	b = append(b, l.Token[:]...)
	return string(number(number(b, fenceArg(fence)), micros(keep)))
}

func breakArg(fence uint64, delay, keep time.Duration) string {
	b := make([]byte, 0, 24)
	b = number(b, fenceArg(fence))
	return string(number(number(b, micros(delay)), micros(keep)))
}

// A signature is what who made last, and of what: a process mostly signs the same.
type signature struct {
	box, shard string
	owner      driver.Owner
	text       string
}

func (s *signature) of(box, shard string, o *driver.Owner) bool {
	return s != nil && s.box == box && s.shard == shard && len(o.Labels) == 0 && len(s.owner.Labels) == 0 &&
		s.owner.Client == o.Client && s.owner.Host == o.Host && s.owner.PID == o.PID
}

// who is what is stored of who claims: the two channels on which its signals are awaited, then the owner. The
// scripts look at the channels only.
func who(box, shard string, o *driver.Owner) string {
	b := make([]byte, 0, 64+len(box)+len(shard))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(box))), box...)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(shard))), shard...)
	return string(locktable.AppendOwner(b, *o))
}
