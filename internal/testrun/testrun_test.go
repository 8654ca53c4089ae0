package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/basictest"
)

// Each planted package fails in a different way. Only the flaky one passes when repeated.
func TestOnlyAFlakyPackagePassesWhenRepeated(t *testing.T) {
	basictest.SkipIfShort(t, "it builds eight programs with the race detector")
	t.Chdir(filepath.Join("testdata", "planted"))
	t.Setenv("GOWORK", "off")
	for _, c := range []struct {
		pkg    string
		passes bool
	}{
		{"flaky", true}, {"always", false}, {"race", false}, {"panicking", false},
		{"violation", false}, {"leak", false}, {"hang", false}, {"broken", false},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			r := testRun{folder: t.TempDir(), flags: []string{"-shuffle=on", "-timeout=10s"}, groups: [][]string{{"./" + c.pkg}}}
			t.Setenv("PLANTED_FIRST", filepath.Join(r.folder, "first"))
			if got := r.run(); got != c.passes {
				t.Errorf("run returns %v; want %v", got, c.passes)
			}
			text, err := os.ReadFile(filepath.Join(r.folder, "flaky.txt"))
			if want := "FLAKY: planted/flaky TestOnce\n"; c.passes && (err != nil || string(text) != want) {
				t.Errorf("flaky.txt has %q, %v; want %q", text, err, want)
			}
			if !c.passes && err == nil {
				t.Errorf("flaky.txt has %q; want no file", text)
			}
		})
	}
}

func TestArgumentsAreParsed(t *testing.T) {
	r, err := parseArguments(strings.Fields("-keep bin -short -p 3 -- a b -- -- c"))
	want := testRun{"bin", []string{"-short", "-p", "3"}, [][]string{{"a", "b"}, {"c"}}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, %v; want %+v", r, err, want)
	}
	for _, args := range []string{"", "-short", "-short --", "-keep bin -- --"} {
		if r, err := parseArguments(strings.Fields(args)); err == nil {
			t.Errorf("%q: %+v; want an error", args, r)
		}
	}
}

// maxRepeated limits the failures of all groups together.
func TestTooManyFailuresAreNotRepeated(t *testing.T) {
	failed := slices.Repeat([]failure{{output: "--- FAIL: TestA (0.1s)\n"}}, maxRepeated+1)
	if few := failed[1:]; !mayBeRepeated(few) {
		t.Errorf("%d failures are not repeated", len(few))
	}
	if mayBeRepeated(failed) {
		t.Errorf("%d failures are repeated", len(failed))
	}
}

func TestViolationsPanicsAndHangsAreNotRepeated(t *testing.T) {
	for want, output := range map[string]string{
		"":                                       "--- FAIL: TestA (0.1s)\n    a_test.go:1: no\nFAIL\n",
		"a data race":                            "WARNING: DATA RACE\n--- FAIL: TestA (0.1s)\nFAIL\n",
		"a panic":                                "--- FAIL: TestA (0.1s)\npanic: a\n\ngoroutine 1 [running]:\n",
		"a test hangs":                           "panic: test timed out after 10s\n",
		"a leak":                                 "PASS\n2 goroutines are left by the tests:\n\nx\n",
		"a checker found a violation":            "--- FAIL: TestA (0.1s)\n    a_test.go:1: VIOLATION: two are inside\nFAIL\n",
		"it ended without the verdict of a test": "exit status 3\n",
	} {
		all := failedPackages("ok  \tp/first\t0.1s\n" + output + "FAIL\tp/second\t0.2s\nok  \tp/third\t0.1s\n")
		if len(all) != 1 || all[0].pkg != "p/second" {
			t.Errorf("%q: the failed packages are %+v, want only p/second", want, all)
			continue
		}
		if got := all[0].reasonNotToRepeat(); got != want {
			t.Errorf("reasonNotToRepeat returns %q for\n%s\nwant %q", got, all[0].output, want)
		}
	}
	if f := failedPackages("FAIL\tp [build failed]\n"); len(f) != 1 || f[0].reasonNotToRepeat() != "it does not compile" {
		t.Errorf("a failed build gives the failures %+v, want one that is not repeated", f)
	}
}
