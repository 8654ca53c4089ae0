package redisscript

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Most arguments of a script are packed into one string, because each further argument
// costs Redis more than its bytes. Numbers are doubles, because Lua has no others; they
// are exact up to 2^53. The header of each script says what it takes.
//
// The script is of the same version as the arguments. But it stores the last part of a
// claim, see claimArg and claimantArg, and the owner of a break, and clients of other
// versions read these.

// The first argument of a claim, a renewal or a release begins with one of these letters.
const (
	quickAcquire = 'a' // an exclusive claim that is not forced, and uses no value
	otherAcquire = 'A'
	quickRenew   = 'r'
	valueRenew   = 'R' // a renewal that writes a value
	quickRelease = 'e' // a release without a minimum hold or an end
	otherRelease = 'E'
	timedRelease = 'O' // a release with an end
)

// A script publishes changes on the plain channel of a name, on its channel of a slot, or
// on both.
const (
	wayPlain = 8
	waySlot  = 16
)

// call makes the call of a script on one name.
func (o *Options) call(name string, args ...string) Call {
	return Call{Keys: keys(o.Prefix, name), Args: args}
}

// claimCall makes the call of a claim whose first argument is first.
func (o *Options) claimCall(c *driver.Claim, first string) (*Script, Call) {
	s, call := Acquire, o.call(c.Name, first, waitArg(c))
	if c.Force {
		s, call.Args = Force, append(call.Args, string(locktable.AppendOwner(nil, c.Owner)))
	}
	if usesValue(c) {
		call.Args = append(call.Args, valueArg(c))
	}
	return s, call
}

// renewCall makes the call of the scripts Renew and Confirm. Only a renewal that writes a
// value has an end.
func (o *Options) renewCall(l *driver.LeaseRef, end int64) Call {
	kind := byte(quickRenew)
	if l.Value != nil {
		kind = valueRenew
	}
	b := number(number(append(make([]byte, 0, 33), kind), micros(l.TTL)), micros(o.Retention))
	c := o.call(l.Name, string(append(b, l.Token[:]...)))
	if l.Value != nil {
		c.Args = append(c.Args, string(append(number(nil, end), l.Value...)))
	}
	return c
}

func (o *Options) releaseCall(l *driver.LeaseRef, end int64) Call {
	kind := byte(quickRelease)
	switch {
	case hasEnd(l):
		kind = timedRelease
	case l.MinHold > 0:
		kind = otherRelease
	}
	b := number(number(append(make([]byte, 0, 41), kind), micros(l.MinHold)), micros(o.Retention))
	b = append(b, l.Token[:]...)
	if hasEnd(l) {
		b = number(b, end)
	}
	c := o.call(l.Name, string(b))
	if l.Value != nil {
		c.Args = append(c.Args, string(l.Value))
	}
	return c
}

func (o *Options) raiseCall(l *driver.LeaseRef, fence uint64) Call {
	b := number(number(append(make([]byte, 0, 32), l.Token[:]...), fenceArg(fence)), micros(o.Retention))
	c := o.call(l.Name, string(b))
	if l.Value != nil {
		c.Args = append(c.Args, string(l.Value))
	}
	return c
}

func (o *Options) breakCall(name string, fence uint64, delay time.Duration, by driver.Owner) Call {
	b := number(number(number(make([]byte, 0, 24), fenceArg(fence)), micros(delay)), micros(o.Retention))
	return o.call(name, string(b), string(locktable.AppendOwner(nil, by)))
}

func (o *Options) watchCall(name string, sharded bool) Call {
	way := byte(wayPlain)
	if sharded {
		way = waySlot
	}
	return o.call(name, string(append(number(nil, micros(watchFor)), way)))
}

func number(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(float64(v)))
}

// micros rounds up, so that no lease ends early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// isQuick reports whether lua/lib/quick_acquire.lua may grant a claim.
func isQuick(c *driver.Claim) bool {
	return c.Weight == driver.Exclusive && !c.Force && !usesValue(c)
}

// usesValue reports whether a claim writes the value of its name, or compares with it.
func usesValue(c *driver.Claim) bool { return c.Value != nil || c.ValueBelow != nil }

func valueArg(c *driver.Claim) string {
	var b []byte
	for _, v := range [][]byte{c.Value, c.ValueBelow} {
		n := 0
		if v != nil {
			n = len(v) + 1
		}
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	return string(append(append(b, c.Value...), c.ValueBelow...))
}

func fencesOf(c *driver.Claim) int {
	if c.Weight == driver.Exclusive {
		return max(c.Fences, 1)
	}
	return 1
}

// claimArg makes the first argument of a claim. Redis stores the last part of it for an
// exclusive holder: the number of fences, the token, the lock-delay and who. end is on
// the server's clock.
func (o *Options) claimArg(c *driver.Claim, end int64, who string) string {
	kind := byte(otherAcquire)
	if isQuick(c) {
		kind = quickAcquire
	}
	b := append(make([]byte, 0, 256), kind)
	b = number(number(b, micros(c.TTL)), micros(max(o.Retention, c.TTL+c.LockDelay)))
	b = number(number(b, fenceArg(c.MinFence)), end)
	b = append(binary.BigEndian.AppendUint32(b, uint32(fencesOf(c))), c.Token[:]...)
	return string(append(number(b, micros(c.LockDelay)), who...))
}

// waitArg makes the second argument of a claim, which its quick case does not need.
func waitArg(c *driver.Claim) string {
	queue := byte(0)
	if c.Queue {
		queue = 1
	}
	b := number(append(make([]byte, 0, 25), queue), micros(c.QueueTTL))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(c.Weight)), uint32(c.Limit))
	return string(number(b, fenceArg(c.Ticket)))
}

func hasEnd(l *driver.LeaseRef) bool { return l.OnTime || l.Value != nil }

// fenceArg returns the fence, or 2^52 if that is less. All granted fences are less than
// 2^52.
func fenceArg(fence uint64) int64 { return int64(min(fence, 1<<52)) }
