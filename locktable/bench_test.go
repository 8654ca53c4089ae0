package locktable_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/driver"
	"github.com/pawl-go/pawl/locktable"
)

// BenchmarkEntryCycle acquires, renews and releases a lock in an entry that stays in
// memory.
func BenchmarkEntryCycle(b *testing.B) {
	e, now, c := &locktable.Entry{}, start, mutex("a")
	l := driver.LeaseRef{Token: c.Token, TTL: c.TTL}
	b.ReportAllocs()
	for b.Loop() {
		now++
		if _, held := e.Acquire(now, c, "inbox"); held != nil {
			b.Fatal(held)
		}
		noError(b, e.Renew(now, &l))
		noError(b, e.Release(now, &l))
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{0, 10, 1000} {
		e := entryWithWaiters(n)
		b.Run(fmt.Sprint("waiters=", n), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = e.Append(buf[:0])
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{0, 10, 1000} {
		stored := entryWithWaiters(n).Append(nil)
		b.Run(fmt.Sprint("waiters=", n), func(b *testing.B) {
			b.SetBytes(int64(len(stored)))
			b.ReportAllocs()
			for b.Loop() {
				must(locktable.Decode(stored))(b)
			}
		})
	}
}
