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

// parallelEnv says how many subtests run at a time.
const parallelEnv = "PAWL_DRIVERTEST_PARALLEL"

// noNetwork is the fault of a harness.
const noNetwork = "the harness has no network"

// topics are all the broken drivers; they are in faults_*_test.go by topic.
var topics = [][]fault{
	acquireFaults, renewFaults, releaseFaults, expiryFaults, queueFaults, fenceFaults,
	raiseFaults, forceFaults, nameFaults, inspectFaults, signalFaults, endFaults, lateFaults, farFaults, ticketFaults, valueFaults, watchFaults, allFaults,
}

var faults = slices.Concat(topics...)

// A broken driver usually keeps its process waiting for something that never comes, so
// there may be more such processes than processors.
func TestMain(m *testing.M) {
	flag.Parse()
	parallel := os.Getenv(parallelEnv)
	if parallel == "" {
		drivertest.Room() // of the suite's own subtests there may be more
		parallel = strconv.Itoa(2 * runtime.GOMAXPROCS(0))
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestSuite runs the suite on the healthy driver that the broken ones are made of; and,
// in a process that TestEveryFaultIsFound starts, on one of them.
func TestSuite(t *testing.T) {
	h := newServer(&fault{}).harness()
	if name := os.Getenv(faultEnv); name == noNetwork {
		h.OpenThrough = nil
	} else if name != "" {
		for _, f := range faults {
			if f.name == name {
				h = newServer(&f).harness().Thorough()
				h.Patience = 60 * time.Millisecond // memory is quick: what has not come by then never comes
			}
		}
	}
	drivertest.Run(t, h)
}

// TestSuiteInRealTime runs it as on a server: most of what the suite does differently
// there is in the topic End.
func TestSuiteInRealTime(t *testing.T) {
	s := newServer(&fault{ticks: true})
	drivertest.Run(t, s.harness())
	if n := s.connected(); n != 0 { // the caller may close its server now
		t.Errorf("Run has returned, and %d clients of its subtests are open", n)
	}
}

// TestEveryFaultIsFound proves that the suite can fail: on each broken driver, at the
// subtests that name what is wrong with it. With -short it is one driver of each topic.
func TestEveryFaultIsFound(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	some := faults
	if testing.Short() {
		some = nil
		for _, topic := range topics {
			some = append(some, topic[0])
		}
	}
	for _, f := range some {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			failed, out := runSuite(t, exe, &f)
			for _, want := range f.wants {
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

// The suite reports a basic fault of a backend, and nothing else. To the author of a
// harness without a network it says what to do.
func TestTheSuiteEndsWithWhatIsBasic(t *testing.T) {
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
			t.Errorf("%s: failed: %s; want only %s of the basics, and what to look at:\n%s", name, strings.Join(failed, ", "), want, out)
		}
	}
	if _, out := runSubtests(t, exe, noNetwork, nil); !strings.Contains(out, "set NoNetwork") {
		t.Errorf("the harness has no network, and is told:\n%s", out)
	}
}

// A subtest of the basics that waits for those before it has the room of one that runs.
func TestTheBasicsEndWhereOneSubtestRunsAtATime(t *testing.T) {
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

func TestFaultsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults {
		if f.name == "" || seen[f.name] || len(f.wants) == 0 {
			t.Errorf("%q has no name, the name of another, or wants nothing", f.name)
		}
		seen[f.name] = true
	}
}

// runLine matches the lines that -test.v prints of subtests that passed.
var runLine = regexp.MustCompile(`(?m)^(=== .*| *--- PASS.*)\n`)

var failLine = regexp.MustCompile(`(?m)^ *--- FAIL: TestSuite/(\S+)`)

// runSuite runs this test binary again, with one fault, and returns which of the subtests
// that are to fail did.
func runSuite(t *testing.T, exe string, f *fault) (failed []string, out string) {
	t.Helper()
	return runSubtests(t, exe, f.name, f.wants)
}

// runSubtests is that with some of the suite's subtests; an empty some means all.
func runSubtests(t *testing.T, exe, fault string, some []string) (failed []string, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	pattern := "^TestSuite$"
	if len(some) > 0 {
		var topics, subtests []string
		for _, one := range some {
			topic, subtest, _ := strings.Cut(one, "/")
			topics, subtests = append(topics, topic), append(subtests, subtest)
		}
		pattern += "/^(" + strings.Join(topics, "|") + ")$/^(" + strings.Join(subtests, "|") + ")$"
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
		t.Errorf("the suite did not end as it should: %v", err)
	}
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		failed = append(failed, m[1])
	}
	return failed, out
}
