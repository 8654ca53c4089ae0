package redisscript

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// busy remembers for busyFor which names were not the quick case, because they were held
// or had waiters. The driver sends their steps alone, because in a common script they
// would fail. Two names may share an element of until, which costs a little speed.
type busy struct {
	seed  maphash.Seed
	began time.Time
	until [1 << 10]atomic.Int64 // the end of the busy time, since began; 0 if there was none
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
