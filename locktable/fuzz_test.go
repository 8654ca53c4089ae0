package locktable_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// reading makes a chooser of bytes. When they are used up, it always picks the first.
func reading(b []byte) (choose chooser, left func() int) {
	return func(_ string, n int) int {
		if len(b) == 0 {
			return 0
		}
		v := int(b[0])
		if b = b[1:]; n > 256 && len(b) > 0 {
			v, b = v<<8|int(b[0]), b[1:]
		}
		return v % n
	}, func() int { return len(b) }
}

// FuzzOperations reads a sequence of operations from the bytes. The lab checks the laws at every step, and the
// model knows every answer.
func FuzzOperations(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x01\x00\x00\x01\x01\x00\x00\x00\x01\x00\x01\x01\x01\x00\x00\x00\x06\x00\x00"))
	f.Add([]byte("\x01\x01\x00\x01\x01\x00\x00\x00\x01\x01\x01\x01\x01\x00\x00\x00\x01\x00\x02\x01\x01\x00\x00\x00\x00\x00\x08\x00\x00\x06\x00\x00"))
	f.Add(bytes.Repeat([]byte{1, 5, 3, 2, 4, 0, 6, 8, 2, 7}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1024 {
			return // the entry is checked after each step, so long inputs only take long
		}
		choose, left := reading(b)
		l, m := newLab(t), &model{}
		for left() > 0 {
			o := l.next(choose, true)
			if o.what == "forget" {
				continue
			}
			if got, want := l.do(o), m.do(l.now, o); got != want {
				t.Fatalf("%v\nthe entry says: %s\nthe model says: %s", o, got, want)
			}
		}
	})
}

// FuzzDecode reads an entry from any bytes: it is refused with a CorruptError, or it is an entry that keeps its
// rules, and keeps them whatever happens to it afterwards.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil), []byte(nil))
	f.Add((&locktable.Entry{}).Append(nil), []byte("\x01\x00\x00"))
	f.Add(full().Append(nil), []byte("\x06\x00\x00\x01\x00\x00"))
	l := newLab(f)
	for i, c := range []*driver.Claim{permits("a", 1, 3), permits("b", 2, 3), mutex("c"), reader("d"), forced(permits("e", 1, 2))} {
		c.Fences, c.LockDelay, c.Owner.Labels = 1+i, sec, map[string]string{"k": "v", "job": "42"}
		l.acquire(c)
		f.Add(l.e.Append(nil), []byte("\x01\x00\x03\x01\x01\x00\x00\x00\x00\x00\x00\x00\x06\x02\x00"))
	}
	f.Fuzz(func(t *testing.T, stored, ops []byte) {
		e, err := locktable.Decode(stored)
		if c := (*locktable.CorruptError)(nil); err != nil && !errors.As(err, &c) {
			t.Fatalf("error is a %T: %v", err, err)
		}
		if err != nil {
			return
		}
		if again := e.Append(nil); !bytes.Equal(again, stored) {
			t.Fatalf("read from %q, stored as %q", stored, again)
		}
		e.Public(start, "job")
		if e.Fence > 1<<61 || len(ops) > 512 {
			return // fences that the next grants could not store
		}
		l := newLab(t)
		l.e, l.top = e, e.Fence
		choose, left := reading(ops)
		for {
			if o := l.next(choose, true); o.what != "forget" {
				l.do(o)
			}
			if left() == 0 {
				return
			}
		}
	})
}
