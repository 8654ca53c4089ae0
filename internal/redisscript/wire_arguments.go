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
// claim, see claimArg and appendClaimant, and the owner of a break, and clients of other
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

func (o *Options) claimCall(c *driver.Claim, end int64, who string) (*Script, Call) {
	var r room
	b := appendKeys(r[:0], o.Prefix, c.Name)
	keys := len(b)
	b = claimArg(b, c, o.Retention, end, who)
	first := len(b)
	b = waitArg(b, c)
	second := len(b)
	switch {
	case c.Force:
		if b = locktable.AppendOwner(b, c.Owner); !usesValue(c) {
			return Force, callOf(b, keys, first, second)
		}
		third := len(b)
		return Force, callOf(valueArg(b, c), keys, first, second, third)
	case usesValue(c):
		return Acquire, callOf(valueArg(b, c), keys, first, second)
	}
	return Acquire, callOf(b, keys, first)
}

// renewCall makes the call of the scripts Renew and Confirm.
func (o *Options) renewCall(l *driver.LeaseRef) Call {
	kind := byte(quickRenew)
	if l.Value != nil {
		kind = valueRenew
	}
	b := number(number(append(make([]byte, 0, 33), kind), micros(l.TTL)), micros(o.Retention))
	return Call{Keys: keys(o.Prefix, l.Name), Args: []string{string(append(b, l.Token[:]...))}}
}

// writeCall makes the call of Renew for a renewal that writes a value.
func (o *Options) writeCall(l *driver.LeaseRef, end int64) Call {
	c := o.renewCall(l)
	c.Args = append(c.Args, string(append(number(nil, end), l.Value...)))
	return c
}

func (o *Options) releaseCall(l *driver.LeaseRef, end int64) Call {
	var r room
	b := appendKeys(r[:0], o.Prefix, l.Name)
	keys := len(b)
	b = releaseArg(b, l, o.Retention, end)
	if l.Value == nil {
		return callOf(b, keys)
	}
	first := len(b)
	return callOf(append(b, l.Value...), keys, first)
}

func (o *Options) raiseCall(l *driver.LeaseRef, fence uint64) Call {
	b := append(make([]byte, 0, 40), l.Token[:]...)
	b = number(number(b, fenceArg(fence)), micros(o.Retention))
	c := Call{Keys: keys(o.Prefix, l.Name), Args: []string{string(b)}}
	if l.Value != nil {
		c.Args = append(c.Args, string(l.Value))
	}
	return c
}

func (o *Options) breakCall(name string, fence uint64, delay time.Duration, by driver.Owner) Call {
	b := number(number(number(make([]byte, 0, 24), fenceArg(fence)), micros(delay)), micros(o.Retention))
	return Call{Keys: keys(o.Prefix, name), Args: []string{string(b), string(locktable.AppendOwner(nil, by))}}
}

func (o *Options) watchCall(name string, sharded bool) Call {
	way := byte(wayPlain)
	if sharded {
		way = waySlot
	}
	return Call{Keys: keys(o.Prefix, name), Args: []string{string(append(number(nil, micros(watchFor)), way))}}
}

func (o *Options) readCall(name string) Call { return Call{Keys: keys(o.Prefix, name)} }

// room is large enough for the arguments of most steps. Such a step allocates only one
// string, and the list of its slices.
type room [512]byte

// callOf makes a call whose keys and arguments are slices of b. ends has the end of the
// keys, and the end of each argument except the last.
func callOf(b []byte, ends ...int) Call {
	const kinds = 4
	text, keys := string(b), len(b)
	if len(ends) > 0 {
		keys = ends[0]
	}
	pieces := make([]string, kinds, kinds+len(ends))
	for i := range kinds {
		pieces[i] = text[i*keys/kinds : (i+1)*keys/kinds]
	}
	for i, from := range ends {
		to := len(text)
		if i+1 < len(ends) {
			to = ends[i+1]
		}
		pieces = append(pieces, text[from:to])
	}
	return Call{Keys: pieces[:kinds:kinds], Args: pieces[kinds:]}
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

func valueArg(b []byte, c *driver.Claim) []byte {
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

// claimArg appends the first argument of a claim. Redis stores the last part of it for an
// exclusive holder: the number of fences, the token, the lock-delay and who. end is on
// the server's clock.
func claimArg(b []byte, c *driver.Claim, keep time.Duration, end int64, who string) []byte {
	kind := byte(otherAcquire)
	if isQuick(c) {
		kind = quickAcquire
	}
	b = append(b, kind)
	keep = max(keep, c.TTL+c.LockDelay)
	b = number(number(number(number(b, micros(c.TTL)), micros(keep)), fenceArg(c.MinFence)), end)
	b = append(binary.BigEndian.AppendUint32(b, uint32(fencesOf(c))), c.Token[:]...)
	return append(number(b, micros(c.LockDelay)), who...)
}

// waitArg appends the second argument of a claim, which its quick case does not need.
func waitArg(b []byte, c *driver.Claim) []byte {
	queue := byte(0)
	if c.Queue {
		queue = 1
	}
	b = number(append(b, queue), micros(c.QueueTTL))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, uint32(c.Weight)), uint32(c.Limit))
	return number(b, fenceArg(c.Ticket))
}

func releaseArg(b []byte, l *driver.LeaseRef, keep time.Duration, end int64) []byte {
	kind := byte(quickRelease)
	switch {
	case hasEnd(l):
		kind = timedRelease
	case l.MinHold > 0:
		kind = otherRelease
	}
	b = append(number(number(append(b, kind), micros(l.MinHold)), micros(keep)), l.Token[:]...)
	if hasEnd(l) {
		b = number(b, end)
	}
	return b
}

func hasEnd(l *driver.LeaseRef) bool { return l.OnTime || l.Value != nil }

// fenceArg returns the fence, or 2^52 if that is less. All granted fences are less than
// 2^52.
func fenceArg(fence uint64) int64 { return int64(min(fence, 1<<52)) }
