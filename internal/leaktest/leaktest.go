// Package leaktest finds goroutines that run after the tests of a package.
package leaktest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// endTimeout is the time within which a goroutine must end after the tests.
const endTimeout = 5 * time.Second

// Main runs the tests of a package for TestMain, and ends the process. The tests fail if
// a goroutine is left whose stack contains none of the ignored functions.
func Main(m interface{ Run() int }, ignored ...string) {
	code := m.Run()
	if code == 0 {
		if err := Find(ignored...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// SetMaxParallel parses the flags, and lets n tests run at once. Most of them only wait.
func SetMaxParallel(n int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Then returns tests that run m and then call end, which stops the shared servers.
func Then(m interface{ Run() int }, end func()) interface{ Run() int } { return thenMain{m, end} }

type thenMain struct {
	m   interface{ Run() int }
	end func()
}

func (t thenMain) Run() int {
	defer t.end()
	return t.m.Run()
}

// Find waits until only the caller's goroutine is left. If others remain, it returns an
// error with their stacks. Call it after all tests.
func Find(ignored ...string) error {
	left := otherStacks(ignored)
	for pause, end := time.Millisecond, time.Now().Add(endTimeout); len(left) > 0 && time.Now().Before(end); pause = min(2*pause, 100*time.Millisecond) {
		time.Sleep(pause)
		left = otherStacks(ignored)
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d goroutines are left by the tests:\n\n%s", len(left), strings.Join(left, "\n\n"))
}

// runtimeFunctions are in the stacks of goroutines that a test binary itself may run: for
// signals, the alarm of -timeout, profiles, traces and fuzzing.
var runtimeFunctions = []string{
	"os/signal.signal_recv", "os/signal.loop", "runtime.ensureSigM", "testing.(*M).startAlarm", "runtime/pprof.profileWriter", "runtime.ReadTrace",
	"internal/fuzz.",
}

// otherStacks returns the stacks except the caller's and the ignored ones.
func otherStacks(ignored []string) (left []string) {
	ignored = slices.Concat(runtimeFunctions, ignored)
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); ; n = runtime.Stack(buf, true) {
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := strings.Split(strings.TrimSpace(string(buf)), "\n\n")
	for _, stack := range stacks[1:] { // the first is the caller's
		if !slices.ContainsFunc(ignored, func(function string) bool { return strings.Contains(stack, function) }) {
			left = append(left, stack)
		}
	}
	return left
}
