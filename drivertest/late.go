package drivertest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/skip"
)

// With a real clock, a subtest that was kept from running proves nothing about the
// backend: it may have looked after an expiry, and not before. If such a subtest fails,
// it is run again with a longer unit. A subtest that fails and was on time has failed. So
// has a subtest of a timeless topic, because mutual exclusion does not depend on time.
// With an injected clock, a subtest is run again only if the process stood still: then a
// Patience, or a ctx, may have ended before anything could happen. With -short, a subtest
// whose last try fails late as well is skipped: the machine is too slow to judge the
// backend. A violation that a checker has found is a failure however late it was. A
// subtest of a timeless topic in which the backend did not answer a request is run again,
// too, if the process stood still: a client may lose its connection on such a machine.

// maxTries is the largest number of runs of a subtest, each with a unit twice as long. A
// subtest that was a little late has one more try, because a time with several round
// trips in it may have grown by more than that. So has a subtest that was stuck, except
// one of the basics, so that the author of a wrong backend soon gets an answer.
const maxTries = 4

// attempt runs f until it passes, or fails while it was on time. It reports nothing
// before its turn, if turn is not nil.
func (s *suite) attempt(t *testing.T, look string, turn <-chan struct{}, f func(k *kit)) {
	try, u := 1, s.Unit
	if s.short { // one more try, and the first with half a unit, but at least shortUnit: most subtests pass with that
		try, u = 0, max(s.Unit/2, min(s.Unit, 2*s.properties.MinTTL), min(s.Unit, shortUnit))
	}
	for ; ; try, u = try+1, s.nextUnit(u) {
		k := newKit(t, s, u)
		done := make(chan struct{})
		go func() { // FailNow ends it
			defer close(done)
			f(k)
		}()
		hangs := !k.waitForReturn(done)
		if hangs {
			k.notes.add("a call has not returned, though its ctx is over:\n" + stuckIn())
		}
		failures := k.notes.take()
		if len(failures) > 0 && s.isOver() && k.whole.Err() != nil {
			t.Skip("not run to its end: " + alreadyFailed)
		}
		late := k.lateness()
		all := strings.Join(failures, "\n")
		violation := strings.Contains(all, "VIOLATION: ")
		unanswered := strings.Contains(all, "pawl: "+s.properties.Backend) // a *driver.Error
		var onTime, final bool
		switch {
		case s.timeless && !unanswered || violation:
			onTime = true
		case s.Clock != nil || s.timeless:
			late = s.stalls.since(k.began)
			onTime = s.thorough || late < s.Patience/50
		default:
			onTime = late <= u/16 || (hangs || s.name == basics && k.isStuck()) && late < s.Patience
			final = try > 1 && (late <= u/4 || k.isStuck())
		}
		final = final || onTime || try == maxTries
		if len(failures) > 0 && !final {
			t.Logf("%v late, where a unit was %v; once more, with a longer one, after %q", late.Round(time.Millisecond), u, failures)
			continue
		}
		if turn != nil {
			<-turn
			if s.failed.Load() {
				t.Skip("what is more telling has failed")
			}
		}
		if len(failures) > 0 && s.short && !s.thorough && !onTime {
			skip.Unproven(t, "not judged: the last try was %v late, where a unit was %v. It failed with %q", late.Round(time.Millisecond), u, failures)
		}
		if s.Clock != nil {
			k.notes.forwardTo(t)
		}
		for _, f := range failures {
			t.Error(f)
		}
		if t.Failed() {
			s.recordFailure()
			t.Log("look at: " + look)
		}
		return
	}
}

// shortUnit is the shortest unit with which -short begins, if the backend allows it.
const shortUnit = 500 * time.Millisecond

// next is the unit of the next try.
func (s *suite) nextUnit(u time.Duration) time.Duration {
	if s.Clock != nil {
		return u
	}
	return 2 * u
}

const alreadyFailed = "another subtest has failed some time ago"

// returns waits for a subtest, and reports false if it should have ended some time ago.
func (k *kit) waitForReturn(done <-chan struct{}) bool {
	over := k.s.over
	for {
		left := time.Until(time.Unix(0, k.until.Load())) + k.s.Patience
		select {
		case <-done: // while the process stood still, perhaps
			return true
		default:
		}
		if left <= 0 {
			return false
		}
		select {
		case <-done:
			return true
		case <-over:
			over = nil
			k.until.Store(min(k.until.Load(), time.Now().UnixNano()))
		case <-time.After(left):
		}
	}
}

// stuckIn is the stacks of the goroutines of subtests.
func stuckIn() string {
	b := make([]byte, 1<<20)
	var in []string
	for one := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(one, "(*suite).attempt.func") {
			in = append(in, one)
		}
	}
	return strings.Join(in[:min(len(in), 3)], "\n\n")
}

// stalls are the times in which the process did not run, as far as one of its goroutines
// can tell.
type stalls struct {
	mu    sync.Mutex // protects both below
	all   []stall
	began time.Time // of the wait that is under way; zero if there is none
}

type stall struct {
	at   time.Time
	last time.Duration
}

// stallCheckInterval is the time between two checks of that goroutine.
const stallCheckInterval = 10 * time.Millisecond

// watch checks until stop is called.
func (s *stalls) watch() (stop func()) {
	done := make(chan struct{})
	var loop sync.WaitGroup
	loop.Go(func() { s.run(done) })
	return func() {
		close(done)
		loop.Wait()
	}
}

func (s *stalls) run(done <-chan struct{}) {
	tick := time.NewTimer(stallCheckInterval)
	defer tick.Stop()
	for {
		began := time.Now()
		s.mu.Lock()
		s.began = began
		s.mu.Unlock()
		tick.Reset(stallCheckInterval)
		select {
		case <-done:
			return
		case <-tick.C:
			if last := time.Since(began) - stallCheckInterval; last > stallCheckInterval {
				s.mu.Lock()
				s.all = append(s.all, stall{time.Now(), last})
				s.mu.Unlock()
			}
		}
	}
}

// since is the longest stall since then. One that has just ended counts although the
// goroutine that checks has not run yet.
func (s *stalls) since(t time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began.IsZero() {
		longest = max(time.Since(s.began)-stallCheckInterval, 0)
	}
	for i := len(s.all) - 1; i >= 0 && s.all[i].at.After(t); i-- {
		longest = max(longest, s.all[i].last)
	}
	return longest
}

// notes are the failures of a subtest that may be run again.
type notes struct {
	mu       sync.Mutex // protects all
	failures []string
	over     bool
	after    testing.TB // what is noted after that goes there; nil if nowhere
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		n.failures = append(n.failures, where()+what)
	} else if n.after != nil {
		n.after.Error(what)
	}
}

// goOn sends failures to t while the subtest's clients end.
func (n *notes) forwardTo(t testing.TB) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.after = t
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	return n.failures
}

// where is the line of the running subtest, in the outermost frame of this package.
func where() (line string) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "(*suite).attempt") || !strings.Contains(f.Function, "/drivertest.") {
			return line
		}
		line = fmt.Sprintf("%s:%d: ", filepath.Base(f.File), f.Line)
		if !more {
			return line
		}
	}
}

func (k *kit) Error(args ...any) {
	k.notes.add(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (k *kit) Errorf(format string, args ...any) {
	k.notes.add(fmt.Sprintf(format, args...))
}

func (k *kit) Fatal(args ...any) {
	k.notes.add(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	runtime.Goexit()
}

func (k *kit) Fatalf(format string, args ...any) {
	k.notes.add(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// stuck reports whether the subtest used up its time in a wait for one answer or event.
// If Acquire had returned shortly before, all answers of the backend were slow.
func (k *kit) isStuck() bool {
	return k.whole.Err() != nil && time.Since(k.began)-time.Duration(k.answered.Load()) >= k.s.Patience
}

// late returns how much longer the subtest took than its own waits. A subtest that was
// stuck waited for an event that never came: then only the stalls of the process count.
func (k *kit) lateness() time.Duration {
	stalled := k.s.stalls.since(k.began)
	if k.isStuck() {
		return stalled
	}
	return max(stalled, time.Since(k.began)-time.Duration(k.ownWaits.Load()))
}

// missing is the time after which a signal counts as missing. Within it, a driver may
// give up a subscription that does not begin, and start another one.
func (s *suite) signalTimeout() time.Duration { return 4 * s.Patience }

// overdue returns a channel that fires at the time from which a signal counts as missing.
func (k *kit) afterSignalTimeout() <-chan time.Time { return time.After(k.s.signalTimeout()) }

// missed fails for a missing signal. The wait for it does not count as late.
func (k *kit) failMissing(format string, args ...any) {
	k.ownWaits.Add(int64(k.s.signalTimeout()))
	k.Fatalf(format+" within %v", append(args, k.s.signalTimeout())...)
}

// clientPatience returns the time in which a client of the root package has to act by
// itself: it polls if the backend does not push, and a lease may have to expire first.
func (k *kit) clientPatience() time.Duration {
	if k.s.Clock != nil {
		return 4 * k.s.Patience
	}
	return 2*k.s.Patience + 8*k.u
}

// happens waits for an event, and reports whether it came.
func happens[T any](k *kit, event <-chan T) (v T, ok bool) {
	select {
	case v = <-event:
		return v, true
	case <-time.After(k.clientPatience()):
		k.ownWaits.Add(int64(k.clientPatience()))
	case <-k.ctx.Done():
	}
	return v, false
}
