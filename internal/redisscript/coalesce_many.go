package redisscript

import (
	"encoding/binary"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// The first argument of a common script has the settings that its claims share. A step
// then adds no more than its token, and a claim also its end. lua/many.lua reads these
// arguments.

// A quickStep is a step that lua/many.lua may take, without its name.
type quickStep struct {
	kind     byte // as in the first argument of a script of one name
	token    driver.Token
	end      int64  // on the server's clock; only for a claim
	terms    *terms // only for a claim
	fences   int    // only for a claim
	minFence uint64 // only for a claim
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

// arg appends the whole argument of a step, as a script of one name takes it. In a common
// script, a claim has this argument if it does not fit the short form.
func (q *quickStep) arg(b []byte) []byte {
	if q.kind != quickAcquire {
		return append(number(number(append(b, q.kind), 0), 0), q.token[:]...)
	}
	b = append(append(b, q.kind), q.terms.times...)
	b = number(number(b, fenceArg(q.minFence)), q.end)
	b = append(binary.BigEndian.AppendUint32(b, uint32(q.fences)), q.token[:]...)
	return append(b, q.terms.rest...)
}

// pack makes the call of a batch. All keys and arguments are pieces of one string.
func pack(prefix string, batch []*step) Call {
	var common *terms
	var latest int64
	size := 128
	for _, s := range batch {
		if s.kind == quickAcquire {
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
		case s.kind == quickRelease:
			all = append(all, s.token[:]...)
		case s.terms == common && s.fences == 1 && s.minFence == 0 && before < 1<<32:
			all = binary.BigEndian.AppendUint32(append(all, s.token[:]...), uint32(before))
		default:
			all = s.arg(all)
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
