// Package leaktest finds the goroutines that the tests of a package leave behind.
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

// patience is the time in which a goroutine has to end after its test.
const patience = 5 * time.Second

// Main is for TestMain: it runs the tests of a package, and ends the process. The tests
// fail if a goroutine is left whose stack has none of the ignored functions.
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

// Parallel parses the flags, and lets n tests run at once: most of them only wait.
func Parallel(n int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Then returns tests that run m and then end, which stops the shared servers.
func Then(m interface{ Run() int }, end func()) interface{ Run() int } { return then{m, end} }

type then struct {
	m   interface{ Run() int }
	end func()
}

func (t then) Run() int {
	defer t.end()
	return t.m.Run()
}

// Find waits until only the caller's goroutine is left. If others stay, it returns an
// error with their stacks. Call it when all tests have ended.
func Find(ignored ...string) error {
	left := others(ignored)
	for pause, end := time.Millisecond, time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); pause = min(2*pause, 100*time.Millisecond) {
		time.Sleep(pause)
		left = others(ignored)
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d goroutines are left by the tests:\n\n%s", len(left), strings.Join(left, "\n\n"))
}

// machinery has the functions of goroutines that a test binary runs beside the tests: for
// signals, once something has asked for them, for the alarm of -timeout, for a profile or
// a trace that is written, and for fuzzing.
var machinery = []string{
	"os/signal.signal_recv", "os/signal.loop", "runtime.ensureSigM", "testing.(*M).startAlarm", "runtime/pprof.profileWriter", "runtime.ReadTrace",
	"internal/fuzz.",
}

// others are the stacks of the goroutines that are neither the caller's nor ignored.
func others(ignored []string) (left []string) {
	ignored = slices.Concat(machinery, ignored)
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
