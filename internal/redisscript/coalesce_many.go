package redisscript

import (
	"encoding/binary"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// The first argument of a common script has the settings that its claims share. A step
// then adds no more than its token, and a claim also its end. lua/many.lua reads these
// arguments.

// A quickStep is a step that lua/many.lua may take, without its name: a claim, or a
// release, which has only a token.
type quickStep struct {
	token    driver.Token
	terms    *terms // nil for a release
	end      int64  // on the server's clock
	fences   int
	minFence uint64
}

// terms are the settings that the claims of a process mostly share, and their encoding.
type terms struct {
	ttl, keep, delay time.Duration
	who              string
	times, rest      string // encoded: what comes before the end of a claim, and what comes after it
}

// termsOf returns the terms of a claim. If the last claim had equal terms, it returns the
// same pointer.
func (d *Driver) termsOf(c *driver.Claim, who string) *terms {
	keep := max(d.Retention, c.TTL+c.LockDelay)
	if last := d.agreed.Load(); last != nil && last.ttl == c.TTL && last.keep == keep && last.delay == c.LockDelay && last.who == who {
		return last
	}
	t := &terms{ttl: c.TTL, keep: keep, delay: c.LockDelay, who: who}
	t.times = string(number(number(nil, micros(c.TTL)), micros(keep)))
	t.rest = string(append(number(nil, micros(c.LockDelay)), who...))
	d.agreed.Store(t)
	return t
}

// pack makes the call of a batch. All keys and arguments are pieces of one string.
func pack(prefix string, batch []*step) Call {
	var common *terms
	var latest int64
	size := 128
	for _, s := range batch {
		if s.terms != nil {
			if common == nil {
				common = s.terms
				size += len(common.rest)
			}
			if latest = max(latest, s.end); s.terms != common || s.fences != 1 || s.minFence != 0 {
				size += 64 + len(s.terms.rest)
			}
		}
		size += len(prefix) + len(s.name) + 32
	}
	all, ends := make([]byte, 0, size), make([]int, 0, 1+2*len(batch))
	if common != nil {
		all = append(number(append(all, common.times...), latest), common.rest...)
	}
	ends = append(ends, len(all))
	for _, s := range batch {
		all = appendKey(all, prefix, s.name)
		ends = append(ends, len(all))
		switch before := latest - s.end; {
		case s.terms == nil:
			all = append(all, s.token[:]...)
		case s.terms == common && s.fences == 1 && s.minFence == 0 && before < 1<<32:
			all = binary.BigEndian.AppendUint32(append(all, s.token[:]...), uint32(before))
		default:
			// The claim does not fit the short form, and has the argument of claimArg.
			all = number(number(append(append(all, quickAcquire), s.terms.times...), fenceArg(s.minFence)), s.end)
			all = append(append(binary.BigEndian.AppendUint32(all, uint32(s.fences)), s.token[:]...), s.terms.rest...)
		}
		ends = append(ends, len(all))
	}
	text, from := string(all), ends[0]
	pieces := make([]string, 1+2*len(batch))
	c := Call{Keys: pieces[:len(batch):len(batch)], Args: pieces[len(batch):]}
	c.Args[0] = text[:from]
	for i := range batch {
		key, arg := ends[1+2*i], ends[2+2*i]
		c.Keys[i], c.Args[1+i] = text[from:key], text[key:arg]
		from = arg
	}
	return c
}
