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

// With a real clock, a subtest that ran late proves nothing about the backend: it may
// have checked after an expiry, instead of before. If such a subtest fails, it is run
// again with a longer unit. With an injected clock, it is run again only if the process
// did not run for some time: then a Patience, or a ctx, may have ended too early. The
// same holds for a subtest of a timeless topic, if the backend did not answer a request.
// Its other failures count, because mutual exclusion does not depend on time. A violation
// always counts. With -short, a subtest whose last try also fails late is skipped.

// maxTries is the largest number of runs of a subtest. Each run doubles the unit. A
// subtest that was a little late has only one more try, because several round trips may
// take longer by more than that. So has a subtest that was stuck, except one of the
// basics, so that the author of a faulty backend soon gets an answer.
const maxTries = 4

// attempt runs f until it passes, or fails on time. It reports nothing before
// earlierReported is closed, unless it is nil.
func (s *suite) attempt(t *testing.T, advice string, earlierReported <-chan struct{}, f func(k *kit)) {
	try, u := 1, s.Unit
	if s.short { // one more try, the first with half a unit or shortUnit, with which most subtests pass
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
			k.failureLog.add("a call has not returned, although its ctx has ended:\n" + subtestStacks())
		}
		failures := k.failureLog.take()
		if len(failures) > 0 && s.isOver() && k.subtestCtx.Err() != nil {
			t.Skip("not finished: " + alreadyFailed)
		}
		late := k.lateness()
		text := strings.Join(failures, "\n")
		violation := strings.Contains(text, "VIOLATION: ")
		unanswered := strings.Contains(text, "pawl: "+s.properties.Backend) // a *driver.Error
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
			t.Logf("%v late with a unit of %v; run again with a longer unit, after %q", late.Round(time.Millisecond), u, failures)
			continue
		}
		if earlierReported != nil {
			<-earlierReported
			if s.failed.Load() {
				t.Skip("a more useful subtest has failed")
			}
		}
		if len(failures) > 0 && s.short && !s.thorough && !onTime {
			skip.Unproven(t, "not judged: the last try was %v late with a unit of %v. It failed with %q", late.Round(time.Millisecond), u, failures)
		}
		if s.Clock != nil {
			k.failureLog.forwardTo(t)
		}
		for _, f := range failures {
			t.Error(f)
		}
		if t.Failed() {
			s.recordFailure()
			t.Log("look at: " + advice)
		}
		return
	}
}

// shortUnit is the shortest unit with which -short begins, if the backend allows it.
const shortUnit = 500 * time.Millisecond

// nextUnit returns the unit of the next try.
func (s *suite) nextUnit(u time.Duration) time.Duration {
	if s.Clock != nil {
		return u
	}
	return 2 * u
}

const alreadyFailed = "another subtest failed some time ago"

// waitForReturn waits for a subtest, and returns false if it is overdue.
func (k *kit) waitForReturn(done <-chan struct{}) bool {
	ended := k.suite.ended
	for {
		left := time.Until(time.Unix(0, k.deadline.Load())) + k.suite.Patience
		select {
		case <-done: // maybe it ended while the process did not run
			return true
		default:
		}
		if left <= 0 {
			return false
		}
		select {
		case <-done:
			return true
		case <-ended:
			ended = nil
			k.deadline.Store(min(k.deadline.Load(), time.Now().UnixNano()))
		case <-time.After(left):
		}
	}
}

// subtestStacks returns the stacks of the goroutines of subtests.
func subtestStacks() string {
	b := make([]byte, 1<<20)
	var in []string
	for one := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(one, "(*suite).attempt.func") {
			in = append(in, one)
		}
	}
	return strings.Join(in[:min(len(in), 3)], "\n\n")
}

// stalls are the times in which the process did not run, as one of its goroutines
// measures them.
type stalls struct {
	mu    sync.Mutex // protects the fields below
	all   []stall
	began time.Time // the begin of the current wait; zero if there is none
}

type stall struct {
	at       time.Time
	duration time.Duration
}

// stallCheckInterval is the time between two checks of the goroutine.
const stallCheckInterval = 10 * time.Millisecond

// watch measures stalls until stop is called.
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
			if duration := time.Since(began) - stallCheckInterval; duration > stallCheckInterval {
				s.mu.Lock()
				s.all = append(s.all, stall{time.Now(), duration})
				s.mu.Unlock()
			}
		}
	}
}

// since returns the longest stall since t. It includes a stall that the goroutine has not
// recorded yet.
func (s *stalls) since(t time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began.IsZero() {
		longest = max(time.Since(s.began)-stallCheckInterval, 0)
	}
	for i := len(s.all) - 1; i >= 0 && s.all[i].at.After(t); i-- {
		longest = max(longest, s.all[i].duration)
	}
	return longest
}

// failureLog has the failures of one run of a subtest, which may be run again.
type failureLog struct {
	mu       sync.Mutex // protects the fields below
	failures []string
	ended    bool
	after    testing.TB // gets failures after the end; may be nil
}

func (n *failureLog) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.failures = append(n.failures, testLine()+what)
	} else if n.after != nil {
		n.after.Error(what)
	}
}

// forwardTo sends later failures to t, while the subtest's clients are closed.
func (n *failureLog) forwardTo(t testing.TB) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.after = t
}

func (n *failureLog) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	return n.failures
}

// testLine returns the line of the running subtest, in the outermost frame of this
// package.
func testLine() (line string) {
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
	k.failureLog.add(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}

func (k *kit) Errorf(format string, args ...any) {
	k.failureLog.add(fmt.Sprintf(format, args...))
}

func (k *kit) Fatal(args ...any) {
	k.failureLog.add(strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	runtime.Goexit()
}

func (k *kit) Fatalf(format string, args ...any) {
	k.failureLog.add(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// isStuck reports whether the subtest used up its time in a wait for one answer or event.
// It was not stuck if Acquire returned shortly before: then all answers were slow.
func (k *kit) isStuck() bool {
	return k.subtestCtx.Err() != nil && time.Since(k.began)-time.Duration(k.lastAnswerAt.Load()) >= k.suite.Patience
}

// lateness returns how much longer the subtest took than its own waits, or how much time
// the backend's clock lost, if that is more. A stuck subtest waited for an event in vain:
// then its own time does not count.
func (k *kit) lateness() time.Duration {
	stalled := k.suite.stalls.since(k.began)
	if k.suite.ClockLag != nil {
		stalled = max(stalled, k.suite.ClockLag()-k.clockLagAtBegin)
	}
	if k.isStuck() {
		return stalled
	}
	return max(stalled, time.Since(k.began)-time.Duration(k.ownWaits.Load()))
}

// signalTimeout is the time after which a signal counts as missing. Within it, a driver
// may replace a subscription that does not begin.
func (s *suite) signalTimeout() time.Duration { return 4 * s.Patience }

// afterSignalTimeout returns a channel that is readable after signalTimeout.
func (k *kit) afterSignalTimeout() <-chan time.Time { return time.After(k.suite.signalTimeout()) }

// failMissing fails the subtest for a missing signal. The wait for it does not count as
// late.
func (k *kit) failMissing(format string, args ...any) {
	k.ownWaits.Add(int64(k.suite.signalTimeout()))
	k.Fatalf(format+" within %v", append(args, k.suite.signalTimeout())...)
}

// clientPatience is the time within which a client of the root package has to act: it
// polls if the backend does not push, and a lease may have to expire first.
func (k *kit) clientPatience() time.Duration {
	if k.suite.Clock != nil {
		return 4 * k.suite.Patience
	}
	return 2*k.suite.Patience + 8*k.unit
}

// waitFor waits for an event, and reports whether it came.
func waitFor[T any](k *kit, event <-chan T) (v T, ok bool) {
	select {
	case v = <-event:
		return v, true
	case <-time.After(k.clientPatience()):
		k.ownWaits.Add(int64(k.clientPatience()))
	case <-k.ctx.Done():
	}
	return v, false
}
