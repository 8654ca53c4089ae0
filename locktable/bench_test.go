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

// BenchmarkEntryHandOver passes a mutex among waiting clients.
func BenchmarkEntryHandOver(b *testing.B) {
	e, now := &locktable.Entry{}, start
	var waiting []*driver.Claim
	for i := range 10 {
		waiting = append(waiting, mutex(fmt.Sprint("client", i)))
		_, _ = e.Acquire(now, waiting[i], "inbox")
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now++
		c := waiting[i%len(waiting)]
		if err := e.Release(now, &driver.LeaseRef{Token: c.Token}); err != nil || len(e.Signals) != 1 {
			b.Fatal(err)
		}
		_, _ = e.Acquire(now, c, "inbox")
		e.Queue[len(e.Queue)-1].Expires, e.Holders[0].Expires = now.Add(wait), now.Add(ttl) // no claim expires
		for j := range e.Queue {
			e.Queue[j].Expires = now.Add(wait)
		}
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
