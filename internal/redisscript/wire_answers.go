package redisscript

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// This file reads the answers of scripts, which are of the same version as the reader.
// But other versions may have stored the claimants and owners in the answers, and other
// versions' scripts may have published the signals.

// damage is the error for stored data, or an answer of a script, that cannot be decoded.
type damage struct{ problem string }

func (d *damage) Error() string {
	return "the stored entry is damaged, or written by another version: " + d.problem
}

const maxHolders = 1 << 20

// readEntry reads the answer of lua/read.lua.
func readEntry(s, name string) (driver.Entry, error) {
	r, e := reader{rest: s}, locktable.Entry{}
	r.take(1) // 'e'
	now := r.instant()
	e.Fence, e.Closed = uint64(r.instant()), r.instant()
	for range min(r.integer(4), maxHolders) {
		if r.failed {
			break
		}
		e.Holders = append(e.Holders, r.holder())
	}
	e.Value = r.value()
	for len(r.rest) > 0 && !r.failed {
		var w locktable.Waiter
		w.Weight, w.Limit, w.Since, w.Expires = r.integer(4), r.integer(4), r.instant(), r.instant()
		r.claimant(&w.ClaimInfo)
		e.Queue = append(e.Queue, w)
	}
	if r.failed {
		return driver.Entry{}, &damage{"the holders or the queue cannot be read"}
	}
	return e.Public(now, name), nil
}

// readRefusal reads the output of lua/lib/refusal.lua: the HeldError of a claim.
func readRefusal(s, name string) (answer, err error) {
	r, e := reader{rest: s}, locktable.Entry{}
	r.take(1) // 'h'
	now := r.instant()
	refused := &driver.HeldError{Name: name, Fence: uint64(r.instant())}
	refused.ClosedFor, refused.RetryAfter = max(0, now.Until(r.instant())), max(0, now.Until(r.instant()))
	refused.Position, refused.Holders = r.integer(4), r.integer(4)
	if refused.Holders > 0 {
		e.Holders = []locktable.Holder{r.holder()}
	}
	seen := e.Public(now, name).Holders
	if r.failed || len(r.rest) > 0 || len(seen) != min(refused.Holders, 1) {
		return nil, &damage{"a refusal that cannot be read"}
	}
	if len(seen) > 0 {
		refused.Holder = seen[0]
	}
	return refused, nil
}

// readTimeOfRefusal returns the server's time in a refusal, or 0 for any other answer.
func readTimeOfRefusal(p Reply) int64 {
	if !isRefusal(p) {
		return 0
	}
	r := reader{rest: p.Text[1:]}
	return int64(r.instant())
}

func isRefusal(p Reply) bool { return strings.HasPrefix(p.Text, "h") }

// hiddenToken replaces the token of a holder that has not released, because tokens do not
// leave Redis.
var hiddenToken = driver.Token{1}

// readClaim reads the answer to a claim: granted, or refused for now.
func readClaim(p Reply, c *driver.Claim) (g driver.Grant, refused, err error) {
	switch {
	case p.Err != nil:
		return driver.Grant{}, nil, p.Err
	case isRefusal(p):
		refused, err = readRefusal(p.Text, c.Name)
		return driver.Grant{}, refused, err
	case p.Text != "" && p.Text[0] == 'v':
		r := reader{rest: p.Text[1:]}
		refused := &driver.ValueNotBelowError{Name: c.Name, Fence: uint64(r.instant()), Value: []byte(r.rest)}
		if r.failed {
			return driver.Grant{}, nil, &damage{"a value that cannot be read"}
		}
		return driver.Grant{}, refused, nil
	}
	g, err = readGrant(p, c)
	return g, nil, err
}

// readGrant reads a grant: the first fence, and the number of fences if that differs from
// the number in the claim.
func readGrant(p Reply, c *driver.Claim) (driver.Grant, error) {
	if p.Text == "" {
		if p.Int <= 0 {
			return driver.Grant{}, &damage{"a fence below 1"}
		}
		return driver.Grant{Fence: uint64(p.Int), Fences: fencesOf(c), TTL: c.TTL}, nil
	}
	r := reader{rest: p.Text}
	r.take(1) // 'g'
	g := driver.Grant{Fence: uint64(r.instant()), Fences: r.integer(4), TTL: c.TTL}
	if r.failed || g.Fences < 1 {
		return driver.Grant{}, &damage{"a grant that cannot be read"}
	}
	return g, nil
}

// readEnd reads the answer to a release or a renewal: whether the token held a lease.
func readEnd(p Reply) error {
	if p.Text == "" {
		if p.Int == 1 {
			return nil
		}
		return driver.ErrNoSuchLease
	}
	r := reader{rest: p.Text}
	r.take(1) // 'b'
	closed := r.duration()
	by := r.owner()
	if r.failed {
		return driver.ErrNoSuchLease // the lease has ended, even if the owner cannot be read
	}
	return &driver.BrokenError{By: by, ClosedFor: closed}
}

// readSignal reads a message on a channel of the driver.
func readSignal(s string) (driver.Signal, bool) {
	r := reader{rest: s}
	signal := driver.Signal{Kind: driver.SignalKind(r.integer(1))}
	copy(signal.Token[:], r.take(len(signal.Token)))
	signal.Fence, signal.Fences = uint64(r.instant()), r.integer(4)
	return signal, !r.failed && (signal.Kind >= driver.SignalRetry && signal.Kind <= driver.SignalLost)
}

// reader reads fields one after the other. After the first missing field, it returns
// zeros.
type reader struct {
	rest   string
	failed bool
}

func (r *reader) take(n int) string {
	if n < 0 || n > len(r.rest) {
		r.failed, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// takeEnd takes the last n bytes.
func (r *reader) takeEnd(n int) reader {
	start := r.take(len(r.rest) - n)
	end := *r
	r.rest = start
	return end
}

// integer reads an unsigned number of this many bytes.
func (r *reader) integer(size int) (n int) {
	for _, b := range []byte(r.take(size)) {
		n = n<<8 | int(b)
	}
	return n
}

// instant reads a double that is a whole number, as strictly as lua/lib/entry.lua does.
func (r *reader) instant() locktable.Instant {
	s := r.take(8)
	if s == "" {
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64([]byte(s)))
	if !(f >= 0 && f < 1<<53 && f == math.Trunc(f)) { // each comparison with NaN is false
		r.failed = true
		return 0
	}
	return locktable.Instant(f)
}

func (r *reader) duration() time.Duration { return time.Duration(r.instant()) * time.Microsecond }

func (r *reader) holder() locktable.Holder {
	h := locktable.Holder{Fence: uint64(r.instant())}
	h.Fences, h.Weight, h.Limit = r.integer(4), r.integer(4), r.integer(4)
	h.Since, h.Expires, h.LockDelay = r.instant(), r.instant(), r.duration()
	if r.integer(1) == 0 {
		h.Token = hiddenToken
	}
	r.claimant(&h.ClaimInfo)
	return h
}

// value reads the fence of the value, its length, and the value.
func (r *reader) value() (v locktable.Value) {
	v.Fence = uint64(r.instant())
	if n := r.integer(2); n > 0 {
		v.Bytes = []byte(r.take(n - 1))
	}
	return v
}

// claimant reads a length, and the output of claimantArg. It skips the channels.
func (r *reader) claimant(c *locktable.ClaimInfo) {
	inner := reader{rest: r.take(r.integer(4))}
	inner.claimantFields(c)
	r.failed = r.failed || inner.failed
}

func (r *reader) claimantFields(c *locktable.ClaimInfo) {
	for range 2 {
		r.take(r.integer(2))
	}
	c.Owner, c.TTL = r.owner(), r.duration()
}

func (r *reader) owner() driver.Owner {
	o, rest, err := locktable.DecodeOwner([]byte(r.rest))
	r.rest = string(rest)
	r.failed = r.failed || err != nil
	return o
}
