package locktable

import (
	"bytes"

	"github.com/pawl-go/pawl/driver"
)

// write stores a value in the name. A nil value changes nothing.
func (e *Entry) write(now Instant, by *Holder, value []byte) {
	if value != nil {
		e.Value, e.Changed, e.Visible = Value{Bytes: value, Fence: by.Fence, At: now}, true, true
		by.Wrote = true
	}
}

// touchValue stores the end of a lease, because the retention of the value counts from
// it.
func (e *Entry) touchValue(ended Instant) {
	if e.Value.Bytes != nil {
		e.Value.At = max(e.Value.At, ended)
	}
}

// valueBelow reports whether the name has no value, or a value less than v. Every value
// is below a nil v.
func (e *Entry) valueBelow(v []byte) bool {
	return v == nil || e.Value.Bytes == nil || bytes.Compare(e.Value.Bytes, v) < 0
}

// writeFirst writes a value unless this lease has written one before.
func (e *Entry) writeFirst(now Instant, by *Holder, value []byte) {
	if !by.Wrote {
		e.write(now, by, value)
	}
}

// checkValueBelow returns an error unless the name's value is below the claim's
// ValueBelow. With an error, the claim loses its place.
func (e *Entry) checkValueBelow(now Instant, c *driver.Claim) error {
	if e.valueBelow(c.ValueBelow) {
		return nil
	}
	refused := &driver.ValueNotBelowError{Name: c.Name, Value: bytes.Clone(e.Value.Bytes), Fence: e.Value.Fence}
	if e.removePlace(c.Token) {
		e.Changed, e.Visible = true, true
		e.promote(now) // the claim may have been the head, and the next waiter may fit
	}
	return refused
}
