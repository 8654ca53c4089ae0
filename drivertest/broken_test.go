package drivertest_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/drivertest"
)

// faultEnv names the fault that TestSuite runs the suite on.
const faultEnv = "PAWL_DRIVERTEST_FAULT"

// parallelEnv sets how many subtests run at a time.
const parallelEnv = "PAWL_DRIVERTEST_PARALLEL"

// noNetwork is a fault of the harness, not of a driver.
const noNetwork = "the harness has no network"

// topicFaults has the faults of each faults_*_test.go.
var topicFaults = [][]fault{
	acquireFaults, renewFaults, releaseFaults, expiryFaults, queueFaults, fenceFaults,
	raiseFaults, forceFaults, nameFaults, inspectFaults, signalFaults, endFaults, lateFaults, farFaults, ticketFaults, valueFaults, watchFaults, allFaults,
}

var faults = slices.Concat(topicFaults...)

// With a broken driver, a process mostly waits for what never comes, so more of them than
// processors may run.
func TestMain(m *testing.M) {
	flag.Parse()
	parallel := os.Getenv(parallelEnv)
	if parallel == "" {
		drivertest.Room() // the suite's own subtests have another limit
		parallel = strconv.Itoa(2 * runtime.GOMAXPROCS(0))
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestSuite runs the suite on a driver without a fault; and, in a process that
// TestEveryFaultIsFound starts, on one with the fault in faultEnv.
func TestSuite(t *testing.T) {
	h := newServer(&fault{}).harness()
	if name := os.Getenv(faultEnv); name == noNetwork {
		h.OpenThrough = nil
	} else if name != "" {
		for _, f := range faults {
			if f.name == name {
				h = newServer(&f).harness().Thorough()
				h.Patience = 60 * time.Millisecond // memory is fast: what has not come by then never comes
			}
		}
	}
	drivertest.Run(t, h)
}

// TestSuiteInRealTime runs the suite with the machine's clock, as on a server. Most of
// what differs is in the topic End.
func TestSuiteInRealTime(t *testing.T) {
	s := newServer(&fault{realClock: true})
	drivertest.Run(t, s.harness())
	if n := s.connected(); n != 0 { // the caller may close its server now
		t.Errorf("Run has returned, but %d clients of its subtests are still open", n)
	}
}

// TestEveryFaultIsFound checks that the suite fails on each broken driver, in the
// subtests that the fault names. With -short it runs one fault of each topic.
func TestEveryFaultIsFound(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	some := faults
	if testing.Short() {
		some = nil
		for _, topic := range topicFaults {
			some = append(some, topic[0])
		}
	}
	for _, f := range some {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			failed, out := runSuite(t, exe, &f)
			for _, want := range f.mustFail {
				if !slices.Contains(failed, want) {
					t.Errorf("%s did not fail; these did: %s", want, strings.Join(failed, ", "))
				}
			}
			if t.Failed() {
				t.Log(runLine.ReplaceAllString(out, ""))
			}
		})
	}
}

// If a basic subtest fails, the suite reports only that. A harness without a network gets
// an error with the advice to set NoNetwork.
func TestSuiteReportsOnlyBasicFailures(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"every claim is granted":                         "AnotherClientSeesWhoHoldsIt",
		"a call goes on for ever, whatever its ctx says": "AReleaseLetsTheNextIn",
	} {
		failed, out := runSubtests(t, exe, name, nil)
		if !slices.Equal(failed, []string{"Basics", "Basics/" + want}) || !strings.Contains(out, "look at: ") {
			t.Errorf("%s: failed: %s; want only Basics/%s, and a \"look at\" text:\n%s", name, strings.Join(failed, ", "), want, out)
		}
	}
	if _, out := runSubtests(t, exe, noNetwork, nil); !strings.Contains(out, "set NoNetwork") {
		t.Errorf("without a network, the harness gets no advice to set NoNetwork:\n%s", out)
	}
}

// A basic subtest that waits for those before it must not take the only slot.
func TestBasicsEndIfOneSubtestRunsAtATime(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	one := exec.CommandContext(ctx, exe, "-test.run=^TestSuiteInRealTime$/^Basics$", "-test.count=1")
	one.Env = append(os.Environ(), parallelEnv+"=1")
	if out, err := one.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestFaultNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults {
		if f.name == "" || seen[f.name] || len(f.mustFail) == 0 {
			t.Errorf("%q: want a unique name, and subtests that must fail", f.name)
		}
		seen[f.name] = true
	}
}

// runLine matches the lines that -test.v prints of subtests that passed.
var runLine = regexp.MustCompile(`(?m)^(=== .*| *--- PASS.*)\n`)

var failLine = regexp.MustCompile(`(?m)^ *--- FAIL: TestSuite/(\S+)`)

// runSuite runs this test binary with one fault and only the subtests that must fail. It
// returns those that did.
func runSuite(t *testing.T, exe string, f *fault) (failed []string, out string) {
	t.Helper()
	return runSubtests(t, exe, f.name, f.mustFail)
}

// runSubtests is runSuite with the subtests in some; an empty some means all.
func runSubtests(t *testing.T, exe, fault string, some []string) (failed []string, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	pattern := "^TestSuite$"
	if len(some) > 0 {
		var topicNames, subtests []string
		for _, one := range some {
			topic, subtest, _ := strings.Cut(one, "/")
			topicNames, subtests = append(topicNames, topic), append(subtests, subtest)
		}
		pattern += "/^(" + strings.Join(topicNames, "|") + ")$/^(" + strings.Join(subtests, "|") + ")$"
	}
	cmd := exec.CommandContext(ctx, exe, "-test.run="+pattern, "-test.v", "-test.count=1",
		"-rapid.nofailfile", "-rapid.shrinktime=1ms",
		"-rapid.checks=2000") // a hundred random cases may miss the fault; it stops at the first that finds it
	cmd.Env = append(os.Environ(), faultEnv+"="+fault)
	b, err := cmd.CombinedOutput()
	out = string(b)
	if err == nil {
		t.Errorf("the suite passed")
	}
	if strings.Contains(out, "panic: ") || ctx.Err() != nil {
		t.Errorf("the suite panicked or took too long: %v", err)
	}
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		failed = append(failed, m[1])
	}
	return failed, out
}
