package locktable

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl/driver"
)

// The stored form of an entry has a magic byte that is also the version, and then the
// fields in order: integers as varints, and strings with their length before them. Each
// entry has exactly one encoding.
//
// Decode trusts no stored bytes: a newer Pawl, an editor or a failing disk may have
// written them. It accepts only what Append writes for an entry that keeps the rules of
// Entry, and returns an error otherwise. An unreadable row never counts as a free name.
const version = 0xA5

// Bounds on decoded numbers. The largest instant is in the year 2255; a float64
// represents it exactly.
const (
	maxInstant = 1<<53 - 1
	maxFence   = 1 << 62
	maxClaims  = 1 << 20 // the largest number of holders, and of waiters
)

// CorruptError describes the damage of a stored entry.
type CorruptError struct{ Problem string }

func (e *CorruptError) Error() string {
	return "the stored entry is damaged, or written by another version: " + e.Problem
}

// Append appends the stored form of e to b.
func (e *Entry) Append(b []byte) []byte {
	b = append(b, version)
	b = binary.AppendUvarint(b, e.Fence)
	b = binary.AppendVarint(b, int64(e.Closed))
	b = binary.AppendUvarint(b, uint64(len(e.Holders)))
	for _, h := range e.Holders {
		b = h.append(b)
		b = binary.AppendUvarint(b, h.Fence)
		b = appendInts(b, int64(h.Since), int64(h.Expires))
		if b = append(b, 0); h.Wrote {
			b[len(b)-1] = 1
		}
	}
	b = binary.AppendUvarint(b, uint64(len(e.Queue)))
	for i := range e.Queue {
		b = e.Queue[i].Append(b)
	}
	if b = binary.AppendUvarint(b, uint64(e.Overflow.Len)); e.Overflow.Len > 0 {
		b = appendInts(b, int64(e.Overflow.Last), int64(e.Overflow.FirstExpiry))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Broken)))
	for _, x := range e.Broken {
		b = append(b, x.Token[:]...)
		b = AppendOwner(b, x.By)
		b = binary.AppendVarint(b, int64(x.Until))
	}
	if b = appendValue(b, e.Value.Bytes); e.Value.Bytes != nil {
		b = binary.AppendUvarint(b, e.Value.Fence)
		b = binary.AppendVarint(b, int64(e.Value.At))
	}
	if len(e.Marks) == 0 {
		return b // the usual case: without marks, the entry has no byte for them
	}
	b = binary.AppendUvarint(b, uint64(len(e.Marks)))
	for _, m := range e.Marks {
		b = append(b, m.Token[:]...)
		b = appendString(b, m.Inbox)
		b = binary.AppendVarint(b, int64(m.Until))
	}
	return b
}

func (c *ClaimInfo) append(b []byte) []byte {
	b = append(b, c.Token[:]...)
	b = appendString(b, c.Inbox)
	b = AppendOwner(b, c.Owner)
	return appendInts(b, int64(c.Fences), int64(c.Weight), int64(c.Limit), int64(c.LockDelay), int64(c.TTL))
}

// Append appends the stored form of w to b, for the entry or for a row of its own.
func (w *Waiter) Append(b []byte) []byte {
	b = appendInts(w.append(b), int64(w.Since), int64(w.Expires))
	return appendValue(appendValue(b, w.Value), w.ValueBelow)
}

// appendValue appends the length of a value plus one, and the value. It appends 0 for no
// value.
func appendValue(b, value []byte) []byte {
	if value == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(value))+1), value...)
}

func appendInts(b []byte, vs ...int64) []byte {
	for _, v := range vs {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// The stored form of an owner begins with a byte that has a bit for each field with a
// value. So a new field needs no other version: an owner without it is stored as before,
// and a client that does not know its bit refuses the owner. The texts have the lowest
// bits, in the order of ownerTexts. A field of another type has the highest free bit.
const ownerPID, ownerLabels = 1 << 7, 1 << 6

func ownerTexts(o *driver.Owner) []*string { return []*string{&o.Client, &o.Host} }

// AppendOwner appends the stored form of o to b. Entries contain it, and so do the
// records of the backends on Redis. Without labels it allocates nothing.
func AppendOwner(b []byte, o driver.Owner) []byte {
	at := len(b) // the index of the byte with a bit for each field
	b = append(b, 0)
	if o.PID != 0 {
		b[at] |= ownerPID
		b = binary.AppendVarint(b, int64(o.PID))
	}
	if len(o.Labels) > 0 {
		b[at] |= ownerLabels
		b = binary.AppendUvarint(b, uint64(len(o.Labels)))
		for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
			b = appendString(appendString(b, k), o.Labels[k])
		}
	}
	for i, text := range ownerTexts(&o) {
		if *text != "" {
			b[at] |= 1 << i
			b = appendString(b, *text)
		}
	}
	return b
}

// DecodeOwner reads the stored form of an owner, and returns what follows it. Its error
// is a [*CorruptError].
func DecodeOwner(b []byte) (o driver.Owner, rest []byte, err error) {
	r := reader{rest: b}
	if o = r.owner(); r.problem != "" {
		return driver.Owner{}, nil, &CorruptError{Problem: r.problem}
	}
	return o, r.rest, nil
}

// Decode reads the stored form of an entry. Its error is a [*CorruptError].
func Decode(b []byte) (*Entry, error) {
	r := reader{rest: b}
	if v := r.byte(); v != version && r.problem == "" {
		r.fail("its first byte is %#x, not %#x", v, version)
	}
	e := &Entry{Fence: r.uint("fence", 0, maxFence), Closed: r.instant("closed")}
	holders := r.count("holders", maxClaims)
	e.Holders = slices.Grow(e.Holders, r.capacityFor(holders))
	for range holders {
		if r.problem != "" {
			break // otherwise a large count would cost memory
		}
		h := Holder{ClaimInfo: r.claimInfo(), Fence: r.uint("fence", 1, maxFence), Since: r.instant("since"), Expires: r.instant("expiry")}
		h.Wrote = r.uint("wrote", 0, 1) == 1
		e.Holders = append(e.Holders, h)
	}
	waiters := r.count("waiters", maxClaims)
	e.Queue = slices.Grow(e.Queue, r.capacityFor(waiters))
	for range waiters {
		if r.problem != "" {
			break
		}
		e.Queue = append(e.Queue, r.waiter())
	}
	if e.Overflow.Len = int(r.uint("rest of the queue", 0, maxClaims)); e.Overflow.Len > 0 {
		e.Overflow.Last, e.Overflow.FirstExpiry = r.instant("arrival of the last waiter"), r.instant("first expiry of the queue")
	}
	for range r.count("broken", maxClaims) {
		if r.problem != "" {
			break
		}
		e.Broken = append(e.Broken, Broken{Token: r.token(), By: r.owner(), Until: r.instant("until")})
	}
	if e.Value.Bytes = r.value(); e.Value.Bytes != nil {
		e.Value.Fence, e.Value.At = r.uint("value's fence", 1, maxFence), r.instant("value's time")
	}
	if len(r.rest) > 0 {
		for range r.uint("marks", 1, maxMarks) {
			if r.problem != "" {
				break
			}
			e.Marks = append(e.Marks, Mark{Token: r.token(), Inbox: r.string(), Until: r.instant("end of a mark")})
		}
	}
	if r.end(); r.problem == "" {
		r.problem = e.problem()
	}
	if r.problem != "" {
		return nil, &CorruptError{Problem: r.problem}
	}
	return e, nil
}

// DecodeWaiter reads the stored form of a waiter. Its error is a [*CorruptError].
func DecodeWaiter(b []byte) (Waiter, error) {
	r := reader{rest: b}
	w := r.waiter()
	if r.end(); r.problem == "" && w.Token.IsZero() {
		r.problem = "a waiter's token is zero"
	}
	if r.problem != "" {
		return Waiter{}, &CorruptError{Problem: r.problem}
	}
	return w, nil
}

// problem checks the rules between fields, and returns the first one that e breaks, or
// "". An entry that breaks one could let a client release another's lease, let two
// clients hold an exclusive name, or let a fence fall.
func (e *Entry) problem() string {
	seen := map[driver.Token]bool{}
	held, last := int64(0), uint64(0)
	for _, h := range e.Holders {
		if h.Fence <= last {
			return fmt.Sprintf("a holder's fence %d does not come after %d", h.Fence, last)
		}
		if last = h.Fence + uint64(h.Fences) - 1; last > e.Fence {
			return fmt.Sprintf("a holder's fence %d is above the last fence %d", last, e.Fence)
		}
		if held += int64(h.Weight); held > int64(h.Limit) {
			return fmt.Sprintf("the weights add up to %d, and a holder's limit is %d", held, h.Limit)
		}
		if !h.Token.IsZero() && seen[h.Token] {
			return "a token occurs twice"
		}
		seen[h.Token] = true
	}
	for i, w := range e.Queue {
		if w.Token.IsZero() || seen[w.Token] {
			return "a waiter's token is zero, or occurs twice"
		}
		if i > 0 && w.Since < e.Queue[i-1].Since {
			return "a waiter arrived before the waiter ahead of it"
		}
		seen[w.Token] = true
	}
	if e.Value.Fence > e.Fence {
		return fmt.Sprintf("the value's fence %d is above the last fence %d", e.Value.Fence, e.Fence)
	}
	if len(e.Queue) > 0 && e.Overflow.Len > 0 {
		return "some waiters are in the entry, and some in rows"
	}
	return ""
}

// reader reads fields one after the other. It keeps the first error, and returns zeros
// after it.
type reader struct {
	rest    []byte
	problem string
	recent  [4]string
	next    int // the index in recent of the next new string
}

func (r *reader) fail(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
	}
	r.rest = nil
}

// end sets an error unless all bytes were read.
func (r *reader) end() {
	if len(r.rest) > 0 {
		r.fail("it has %d more bytes", len(r.rest))
	}
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.fail("it ends too early")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) token() (t driver.Token) {
	copy(t[:], r.take(len(t)))
	return t
}

// varint reads a number, and accepts only its shortest form, because an entry has one
// encoding.
func (r *reader) varint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("a number is incomplete, or not in its shortest form")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) uint(what string, low, high uint64) uint64 {
	v := r.varint()
	if v < low || v > high {
		r.fail("%s is %d", what, v)
		return 0
	}
	return v
}

func (r *reader) int(what string, low, high int64) int64 {
	u := r.varint()
	v := int64(u>>1) ^ -int64(u&1) // zigzag, as binary.AppendVarint writes it
	if v < low || v > high {
		r.fail("%s is %d", what, v)
		return 0
	}
	return v
}

func (r *reader) instant(what string) Instant { return Instant(r.int(what, -maxInstant, maxInstant)) }

func (r *reader) duration(what string) time.Duration {
	return time.Duration(r.int(what, 0, int64(driver.MaxTTL)))
}

func (r *reader) claimInfo() ClaimInfo {
	c := ClaimInfo{Token: r.token(), Inbox: r.string(), Owner: r.owner(), Fences: int(r.int("fences", 1, driver.MaxFences))}
	c.Weight, c.Limit = int(r.int("weight", 1, driver.Unlimited)), int(r.int("limit", 1, driver.Unlimited))
	if c.Weight > c.Limit {
		r.fail("weight is %d of %d", c.Weight, c.Limit)
	}
	c.LockDelay, c.TTL = r.duration("lock-delay"), r.duration("TTL")
	return c
}

func (r *reader) waiter() Waiter {
	return Waiter{
		ClaimInfo: r.claimInfo(), Since: r.instant("since"), Expires: r.instant("expiry"), Value: r.value(), ValueBelow: r.value(),
	}
}

// value returns nil for no value, and a slice that is not nil for an empty value.
func (r *reader) value() []byte {
	n := int(r.uint("length of a value", 0, driver.MaxValue+1))
	if n == 0 {
		return nil
	}
	return append([]byte{}, r.take(n-1)...)
}

// count reads the number of elements that follow. Each takes at least a byte, so count
// refuses a number greater than the number of bytes left, before memory is allocated.
func (r *reader) count(what string, most uint64) int {
	n := int(r.uint(what, 0, most))
	if n > len(r.rest) {
		r.fail("%d %s in %d bytes", n, what, len(r.rest))
		return 0
	}
	return n
}

// capacityFor returns the capacity to allocate for n elements. It has a limit, because a
// damaged count must not cost memory.
func (r *reader) capacityFor(n int) int { return min(n, len(r.rest)/len(driver.Token{}), 1000) }

// string reads a string. Many claims have the same client, host or inbox, so it reuses
// recent strings.
func (r *reader) string() string {
	b := r.take(r.count("bytes", 1<<16))
	if len(b) == 0 {
		return ""
	}
	for _, known := range r.recent {
		if known == string(b) { // the comparison does not copy b
			return known
		}
	}
	s := string(b)
	r.recent[r.next%len(r.recent)] = s
	r.next++
	return s
}

func (r *reader) owner() (o driver.Owner) {
	texts, fields := ownerTexts(&o), r.byte()
	if fields&^(ownerPID|ownerLabels) >= 1<<len(texts) {
		r.fail("an owner has the fields %#x", fields)
	}
	if fields&ownerPID != 0 {
		o.PID = int(r.int("pid", 1, 1<<31-1))
	}
	if fields&ownerLabels != 0 {
		n, last := int(r.uint("number of labels", 1, driver.MaxLabels)), ""
		o.Labels = make(map[string]string, n)
		for i := range n {
			k := r.string()
			if i > 0 && k <= last {
				r.fail("label %.40q does not come after %.40q", k, last)
			}
			last, o.Labels[k] = k, r.string()
		}
	}
	for i, text := range texts {
		if fields>>i&1 == 1 {
			if *text = r.string(); *text == "" {
				r.fail("a text of an owner is empty")
			}
		}
	}
	return o
}
