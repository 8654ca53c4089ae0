package stamped

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/pawl-go/pawl/locktable"
	"github.com/pawl-go/pawl/locktable/swap"
)

// An Envelope is the stored record of a name.
type Envelope struct {
	Window   swap.Window // the swap counts if its stamp is within this window
	Value    []byte      // the value of the name, if the swap counts
	Previous []byte      // the value of the name, if the swap does not count: the value that it replaced

	// VoidVersions has the last maxVoid void versions, in order. It is for stores whose
	// writers read their stamps afterwards.
	VoidVersions []uint64
}

// Next returns the envelope of a swap that replaces a value. void is the
// [Envelope.VoidAt] of the replaced envelope.
func Next(s swap.Swap, void []uint64) *Envelope {
	return &Envelope{Window: s.Window, Value: s.Value, Previous: s.Previous, VoidVersions: void}
}

// InsideWindow reports whether an envelope with that stamp counts.
func (e *Envelope) InsideWindow(stamp locktable.Instant) bool {
	return e.Window.From <= stamp && stamp <= e.Window.To
}

// ValueAt returns the value of the name, according to an envelope with that stamp.
func (e *Envelope) ValueAt(stamp locktable.Instant) []byte {
	if e.InsideWindow(stamp) {
		return e.Value
	}
	return e.Previous
}

// maxVoid is the number of void swaps that are remembered. Usually a writer looks for its
// swap before that many others follow.
const maxVoid = 32

// VoidAt returns the VoidVersions of the next envelope. version and stamp are this one's.
func (e *Envelope) VoidAt(version uint64, stamp locktable.Instant) []uint64 {
	if e.InsideWindow(stamp) {
		return e.VoidVersions
	}
	void := append(slices.Clip(e.VoidVersions), version)
	return void[max(0, len(void)-maxVoid):]
}

// Counted reports whether the swap with that version counted. The swap must be older than
// this envelope. known is false if too many swaps since then were void.
func (e *Envelope) Counted(version uint64) (counted, known bool) {
	switch {
	case slices.Contains(e.VoidVersions, version):
		return false, true
	case len(e.VoidVersions) == maxVoid && version < e.VoidVersions[0]:
		return false, false
	}
	return true, true
}

// format is the first byte of the stored form, and its version.
const format = 0xE1

// Append appends the stored form of e to b.
func (e *Envelope) Append(b []byte) []byte {
	b = append(b, format)
	b = binary.AppendVarint(b, int64(e.Window.From))
	b = binary.AppendVarint(b, int64(e.Window.To))
	b = binary.AppendUvarint(b, uint64(len(e.VoidVersions)))
	for _, v := range e.VoidVersions {
		b = binary.AppendUvarint(b, v)
	}
	b = append(binary.AppendUvarint(b, uint64(len(e.Value))), e.Value...)
	return append(b, e.Previous...)
}

// Decode reads the stored form of an envelope. The values of the envelope are slices of
// stored. If Append would write other bytes, its error is a [*locktable.CorruptError].
func Decode(stored []byte) (*Envelope, error) {
	if len(stored) == 0 || stored[0] != format {
		return nil, damaged("its first byte is wrong")
	}
	rest, bad := stored[1:], false
	skip := func(n int) { // n is 0 or less if there was no number
		if bad = bad || n <= 0; !bad {
			rest = rest[n:]
		}
	}
	instant := func() locktable.Instant {
		v, n := binary.Varint(rest)
		skip(n)
		return locktable.Instant(v)
	}
	number := func() uint64 {
		v, n := binary.Uvarint(rest)
		skip(n)
		return v
	}
	e := &Envelope{}
	e.Window.From, e.Window.To = instant(), instant()
	n := number()
	if n > maxVoid {
		return nil, damaged("it names too many void versions")
	}
	for range n {
		e.VoidVersions = append(e.VoidVersions, number())
	}
	n = number()
	if bad || n > uint64(len(rest)) {
		return nil, damaged("it ends too soon")
	}
	e.Value, e.Previous = rest[:n:n], rest[n:]
	if !bytes.Equal(e.Append(make([]byte, 0, len(stored))), stored) {
		return nil, damaged("its numbers are not in the shortest form")
	}
	return e, nil
}

func damaged(problem string) error {
	return &locktable.CorruptError{Problem: "its envelope: " + problem}
}
