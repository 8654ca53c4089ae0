package redisscript

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// busy remembers for a while which names were not the quick case: somebody held them, or
// waited. Their steps are sent alone, for together they would only be sent twice. Two
// names may share a place; that costs a little speed.
type busy struct {
	seed  maphash.Seed
	began time.Time
	until [1 << 10]atomic.Int64 // since began; 0 if it never was
}

const busyFor = time.Second

func newBusy() *busy { return &busy{seed: maphash.MakeSeed(), began: time.Now()} }

func (b *busy) place(name string) *atomic.Int64 {
	return &b.until[maphash.String(b.seed, name)%uint64(len(b.until))]
}

func (b *busy) note(name string) { b.place(name).Store(int64(time.Since(b.began) + busyFor)) }

func (b *busy) is(name string) bool {
	until := b.place(name).Load()
	return until != 0 && int64(time.Since(b.began)) < until
}
