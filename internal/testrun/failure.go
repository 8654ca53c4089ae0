package main

import (
	"regexp"
	"strings"
)

// failure is a package whose tests failed.
type failure struct {
	pkg     string
	shuffle string // the seed of the order of its tests; empty without -shuffle
	output  string // of go test for the package
}

// Lines in the output of go test: the last line of a package, its seed, a failed test.
var (
	packageLine = regexp.MustCompile(`^(?:ok|\?|---|FAIL) *\t(\S+)`)
	shuffleLine = regexp.MustCompile(`(?m)^-test\.shuffle (\d+)$`)
	failedTest  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
)

// failedPackages returns the packages that failed. go test prints the output of a package
// before the line that names the package.
func failedPackages(output string) (all []failure) {
	var block strings.Builder
	for line := range strings.Lines(output) {
		block.WriteString(line)
		m := packageLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if strings.HasPrefix(line, "FAIL") {
			f := failure{pkg: m[1], output: block.String()}
			if seed := shuffleLine.FindStringSubmatch(f.output); seed != nil {
				f.shuffle = seed[1]
			}
			all = append(all, f)
		}
		block.Reset()
	}
	return all
}

// reasonNotToRepeat returns why a failure must not be repeated, or "" if it may be.
func (f failure) reasonNotToRepeat() string {
	for _, sign := range []struct {
		in     *regexp.Regexp
		reason string
	}{
		{regexp.MustCompile(`(?m)^FAIL\t\S+ \[(?:build|setup) failed\]`), "it does not compile"},
		{regexp.MustCompile(`WARNING: DATA RACE`), "a data race"},
		{regexp.MustCompile(`VIOLATION: `), "a checker found a violation"},
		{regexp.MustCompile(`panic: test timed out`), "a test hangs"},
		{regexp.MustCompile(`(?m)^(?:panic: |fatal error: |SIG[A-Z]+: |\s+panic: )`), "a panic"},
		{regexp.MustCompile(`(?m)^\d+ goroutines are left by the tests:`), "a leak"},
	} {
		if sign.in.MatchString(f.output) {
			return sign.reason
		}
	}
	if !failedTest.MatchString(f.output) {
		return "it ended without the verdict of a test"
	}
	return ""
}

// flakyLines returns a line for each failed test.
func (f failure) flakyLines() (lines []string) {
	for _, m := range failedTest.FindAllStringSubmatch(f.output, -1) {
		lines = append(lines, "FLAKY: "+f.pkg+" "+m[1])
	}
	return lines
}
