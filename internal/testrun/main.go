package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/skip"
)

// maxRepeated is the largest number of failed packages that testrun repeats. If more
// fail, the machine or the change is the cause, and repeating would hide that.
const maxRepeated = 2

func main() {
	r, err := parseArguments(os.Args[1:])
	if err == nil {
		err = r.prepare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	passed := r.run()
	r.showUnproven()
	if !passed {
		os.Exit(1)
	}
}

// A testRun has the arguments of testrun.
type testRun struct {
	folder string     // for flaky.txt and unproven.txt; empty for neither
	flags  []string   // of go test
	groups [][]string // packages; the groups run one after the other
}

func parseArguments(args []string) (r testRun, err error) {
	if len(args) >= 2 && args[0] == "-keep" {
		r.folder, args = args[1], args[2:]
	}
	for i, arg := range args {
		switch last := len(r.groups) - 1; {
		case arg == "--":
			r.groups = append(r.groups, nil)
		case last < 0:
			r.flags = args[:i+1]
		default:
			r.groups[last] = append(r.groups[last], arg)
		}
	}
	r.groups = slices.DeleteFunc(r.groups, func(packages []string) bool { return len(packages) == 0 })
	if len(r.groups) == 0 {
		return r, errors.New("usage: testrun [-keep FOLDER] [FLAGS OF GO TEST] -- PACKAGE... [-- PACKAGE...]")
	}
	return r, nil
}

// prepare removes the lists of an earlier run, and sets the file of skip.Unproven.
func (r testRun) prepare() error {
	if r.folder == "" {
		return nil
	}
	folder, err := filepath.Abs(r.folder) // a test runs in the folder of its package
	if err != nil {
		return err
	}
	for _, name := range []string{"flaky.txt", "unproven.txt"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.MkdirAll(folder, 0o750), os.Setenv(skip.List, filepath.Join(folder, "unproven.txt")))
}

// run runs the tests, and reports whether all passed, if need be when repeated.
func (r testRun) run() bool {
	var failed []failure
	for _, packages := range r.groups {
		output, passed := goTest(r.flags, packages)
		if passed {
			continue
		}
		groupFailures := failedPackages(output)
		if len(groupFailures) == 0 {
			return false // go test itself failed
		}
		failed = append(failed, groupFailures...)
	}
	return mayBeRepeated(failed) && r.passWhenRepeated(failed)
}

// mayBeRepeated reports whether the failures are few, and all of them may be repeated.
func mayBeRepeated(failed []failure) bool {
	ok := true
	for _, f := range failed {
		if reason := f.reasonNotToRepeat(); reason != "" {
			fmt.Printf("RED: %s: %s\n", f.pkg, reason)
			ok = false
		}
	}
	if ok && len(failed) > maxRepeated {
		fmt.Printf("RED: %d packages failed; at most %d are repeated\n", len(failed), maxRepeated)
		ok = false
	}
	return ok
}

// passWhenRepeated repeats failed packages. If all pass, it lists their tests as flaky.
func (r testRun) passWhenRepeated(failed []failure) bool {
	var lines []string
	for _, f := range failed {
		if !passesTwice(f, r.flags) {
			fmt.Printf("RED: %s failed again\n", f.pkg)
			return false
		}
		lines = append(lines, f.flakyLines()...)
	}
	if len(lines) == 0 {
		return true
	}
	text := strings.Join(lines, "\n") + "\n"
	fmt.Print(text)
	if r.folder == "" {
		return true
	}
	if err := os.WriteFile(filepath.Join(r.folder, "flaky.txt"), []byte(text), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return false
	}
	return true
}

// passesTwice runs a package twice, alone, with the same order of tests.
func passesTwice(f failure, flags []string) bool {
	if f.shuffle != "" {
		flags = slices.Clone(flags)
		for i, flag := range flags {
			if strings.HasPrefix(flag, "-shuffle=") {
				flags[i] = "-shuffle=" + f.shuffle
			}
		}
	}
	for n := range 2 {
		fmt.Printf("==== %s failed; it runs again, alone, %d of 2\n", f.pkg, n+1)
		if _, ok := goTest(slices.Concat(flags, []string{"-count=1"}), []string{f.pkg}); !ok {
			return false
		}
	}
	return true
}

// goTest runs go test -race, and prints and returns its output.
func goTest(flags, packages []string) (output string, passed bool) {
	var kept bytes.Buffer
	c := exec.Command("go", slices.Concat([]string{"test", "-race"}, flags, packages)...)
	c.Stdout = io.MultiWriter(os.Stdout, &kept)
	c.Stderr = c.Stdout
	passed = c.Run() == nil
	return kept.String(), passed
}

// showUnproven prints the list of skip.Unproven.
func (r testRun) showUnproven() {
	if r.folder == "" {
		return
	}
	if text, err := os.ReadFile(filepath.Join(r.folder, "unproven.txt")); err == nil {
		fmt.Print(string(text))
	}
}
