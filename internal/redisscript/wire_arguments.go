package redisscript

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// Most arguments of a script are packed into one string, because each further argument
// costs Redis more than its bytes. Numbers are doubles, because Lua has no others; they
// are exact up to 2^53. The header of each script says what it takes.
//
// The script is of the same version as the arguments. But it stores the last part of a
// claim, see appendClaimArg and claimantArg, and the owner of a break. Clients of other
// versions read both.

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

// A packer makes the keys and arguments of a call as slices of one string. Allocating
// each of them would cost more than the rest of a step here.
type packer struct {
	strings.Builder
	begin int      // the offset of the next key or argument
	parts []string // the keys, and then the arguments
}

func (p *packer) endPart() {
	p.parts = append(p.parts, p.String()[p.begin:])
	p.begin = p.Len()
}

// key adds a key of a name, see escaper.
func (p *packer) key(prefix, escaped string, letter byte) {
	p.WriteString(prefix)
	p.WriteByte('{')
	p.WriteString(escaped)
	p.WriteByte('}')
	p.WriteByte(letter)
	p.endPart()
}

// call makes the call of a script on one name. It leaves out arguments that are nil.
func (o *Options) call(name string, args ...[]byte) Call {
	escaped := escaper.Replace(name)
	size := len(keyLetters) * (len(o.Prefix) + len(escaped) + 3)
	for _, arg := range args {
		size += len(arg)
	}
	p := packer{parts: make([]string, 0, len(keyLetters)+len(args))}
	p.Grow(size)
	for i := range keyLetters {
		p.key(o.Prefix, escaped, keyLetters[i])
	}
	for _, arg := range args {
		if arg != nil {
			p.Write(arg)
			p.endPart()
		}
	}
	return Call{Keys: p.parts[:len(keyLetters):len(keyLetters)], Args: p.parts[len(keyLetters):], oneName: true}
}

// claimCall makes the call of a claim.
func (o *Options) claimCall(c *driver.Claim, end int64, claimant string) (*Script, Call) {
	s := Acquire
	var by, value []byte
	if c.Force {
		s, by = Force, locktable.AppendOwner(nil, c.Owner)
	}
	if usesValue(c) {
		value = valueArg(c)
	}
	return s, o.call(c.Name, o.appendClaimArg(make([]byte, 0, 512), c, end, claimant), appendWaitArg(make([]byte, 0, 32), c), by, value)
}

// renewCall makes the call of the scripts Renew and Confirm. Only a renewal that writes a
// value has an end.
func (o *Options) renewCall(l *driver.LeaseRef, end int64) Call {
	kind := byte(quickRenew)
	if l.Value != nil {
		kind = valueRenew
	}
	b := appendNumbers(append(make([]byte, 0, 33), kind), micros(l.TTL), micros(o.Retention))
	var value []byte
	if l.Value != nil {
		value = append(appendNumbers(nil, end), l.Value...)
	}
	return o.call(l.Name, append(b, l.Token[:]...), value)
}

func (o *Options) releaseCall(l *driver.LeaseRef, end int64) Call {
	kind := byte(quickRelease)
	switch {
	case hasEnd(l):
		kind = timedRelease
	case l.MinHold > 0:
		kind = otherRelease
	}
	b := appendNumbers(append(make([]byte, 0, 41), kind), micros(l.MinHold), micros(o.Retention))
	b = append(b, l.Token[:]...)
	if hasEnd(l) {
		b = appendNumbers(b, end)
	}
	return o.call(l.Name, b, l.Value)
}

func (o *Options) raiseCall(l *driver.LeaseRef, fence uint64) Call {
	b := appendNumbers(append(make([]byte, 0, 32), l.Token[:]...), fenceArg(fence), micros(o.Retention))
	return o.call(l.Name, b, l.Value)
}

func (o *Options) breakCall(name string, fence uint64, delay time.Duration, by driver.Owner) Call {
	b := appendNumbers(make([]byte, 0, 24), fenceArg(fence), micros(delay), micros(o.Retention))
	return o.call(name, b, locktable.AppendOwner(nil, by))
}

func (o *Options) watchCall(name string, sharded bool) Call {
	way := byte(wayPlain)
	if sharded {
		way = waySlot
	}
	return o.call(name, append(appendNumbers(nil, micros(watchNoteTTL)), way))
}

// appendNumbers appends numbers as doubles.
func appendNumbers(b []byte, all ...int64) []byte {
	for _, v := range all {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(float64(v)))
	}
	return b
}

// micros rounds up, so that no lease ends early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// isQuick reports whether lua/lib/quick_acquire.lua may grant a claim.
func isQuick(c *driver.Claim) bool {
	return c.Weight == driver.Exclusive && !c.Force && !usesValue(c)
}

// usesValue reports whether a claim writes the value of its name, or compares with it.
func usesValue(c *driver.Claim) bool { return c.Value != nil || c.ValueBelow != nil }

func valueArg(c *driver.Claim) (b []byte) {
	for _, v := range [][]byte{c.Value, c.ValueBelow} {
		n := 0
		if v != nil {
			n = len(v) + 1
		}
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	}
	return append(append(b, c.Value...), c.ValueBelow...)
}

func fencesOf(c *driver.Claim) int {
	if c.Weight == driver.Exclusive {
		return max(c.Fences, 1)
	}
	return 1
}

// appendClaimArg appends the first argument of a claim. For an exclusive holder, Redis
// stores the last part of it: the number of fences, the token, the lock-delay and the
// claimant. end is a time on the server's clock.
func (o *Options) appendClaimArg(b []byte, c *driver.Claim, end int64, claimant string) []byte {
	kind := byte(otherAcquire)
	if isQuick(c) {
		kind = quickAcquire
	}
	b = o.appendTimes(append(b, kind), c)
	b = appendNumbers(b, fenceArg(c.MinFence), end)
	b = append(binary.BigEndian.AppendUint32(b, uint32(fencesOf(c))), c.Token[:]...)
	return append(appendNumbers(b, micros(c.LockDelay)), claimant...)
}

// appendTimes appends the TTL, and the time for which the server remembers the name.
func (o *Options) appendTimes(b []byte, c *driver.Claim) []byte {
	return appendNumbers(b, micros(c.TTL), micros(max(o.Retention, c.TTL+c.LockDelay)))
}

// appendWaitArg appends the second argument of a claim. The quick case does not need it.
func appendWaitArg(b []byte, c *driver.Claim) []byte {
	queue := byte(0)
	if c.Queue {
		queue = 1
	}
	b = appendNumbers(append(b, queue), micros(c.QueueTTL))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(c.Weight)), uint32(c.Limit))
	return appendNumbers(b, fenceArg(c.Ticket))
}

func hasEnd(l *driver.LeaseRef) bool { return l.HasEnd || l.Value != nil }

// fenceArg returns the fence, or 2^52 if that is less. All granted fences are less than
// 2^52.
func fenceArg(fence uint64) int64 { return int64(min(fence, 1<<52)) }
