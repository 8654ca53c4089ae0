package pawl_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memlock"
)

// Who is not observed pays nothing for those who are: no allocation of a whole cycle is
// made in a file of the Observer.
func TestWithoutAnObserverNothingIsAllocatedForIt(t *testing.T) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1 // each
	defer func() { runtime.MemProfileRate = rate }()

	observed := func(o *pawl.Observer) int64 {
		c, err := pawl.New(memlock.New(nil), &pawl.Options{Observer: o})
		noError(t, err)
		defer c.Close(background)
		before := allocatedIn("/observer.go")
		for range 1000 {
			lease := must(t)(c.Mutex("x").Lock(background))
			noError(t, lease.Release(background))
		}
		return allocatedIn("/observer.go") - before
	}
	if n := observed(nil); n != 0 {
		t.Errorf("%d allocations in 1000 cycles without an Observer", n)
	}
	o := &pawl.Observer{Acquired: func(pawl.AcquiredEvent) {}, Released: func(pawl.ReleasedEvent) {}}
	if n := observed(o); n < 1000 {
		t.Errorf("%d allocations in 1000 cycles with one: does this test see them?", n)
	}
}

// allocatedIn is how many allocations were made by functions of a file, or called by one.
func allocatedIn(file string) (n int64) {
	runtime.GC() // twice, and the profile is complete
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1000)
	for {
		had, ok := runtime.MemProfile(records, true)
		if records = records[:min(had, len(records))]; ok {
			break
		}
		records = make([]runtime.MemProfileRecord, 2*had)
	}
	for _, r := range records {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var frame runtime.Frame
			if frame, more = frames.Next(); strings.HasSuffix(frame.File, file) {
				n += r.AllocObjects
				break
			}
		}
	}
	return n
}
