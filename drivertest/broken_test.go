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

// faults are all the broken drivers; they stand in faults_*_test.go by topic.
var faults = slices.Concat(acquireFaults, renewFaults, releaseFaults, expiryFaults, queueFaults, fenceFaults,
	raiseFaults, forceFaults, nameFaults, inspectFaults, signalFaults, endFaults, lateFaults, ticketFaults, valueFaults, watchFaults, allFaults)

// A broken driver mostly keeps its process waiting for what never comes, so there may be
// more of them at once than processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestSuite runs the suite on the healthy driver that the broken ones are made of; and,
// in a process that TestEveryFaultIsFound starts, on one of them.
func TestSuite(t *testing.T) {
	h := newServer(&fault{}).harness()
	if name := os.Getenv(faultEnv); name != "" {
		for _, f := range faults {
			if f.name == name {
				h = newServer(&f).harness()
				h = h.Thorough()
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
// subtests that name what is wrong with it.
func TestEveryFaultIsFound(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
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

func TestFaultsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults {
		if f.name == "" || seen[f.name] || len(f.wants) == 0 {
			t.Errorf("%q has no name, the name of another, or wants nothing", f.name)
		}
		seen[f.name] = true
	}
}

// runLine is what -test.v prints of subtests that passed.
var runLine = regexp.MustCompile(`(?m)^(=== .*| *--- PASS.*)\n`)

var failLine = regexp.MustCompile(`(?m)^ *--- FAIL: TestSuite/(\S+)`)

// runSuite runs this test binary again, with one fault, and returns the subtests that
// failed, of the topics in which they are wanted.
func runSuite(t *testing.T, exe string, f *fault) (failed []string, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var topics []string
	for _, want := range f.wants {
		topic, _, _ := strings.Cut(want, "/")
		topics = append(topics, topic)
	}
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestSuite$/^("+strings.Join(topics, "|")+")$", "-test.v", "-test.count=1",
		"-rapid.nofailfile", "-rapid.shrinktime=1ms")
	cmd.Env = append(os.Environ(), faultEnv+"="+f.name)
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
