package main

import (
	"regexp"
	"strings"
)

// The race detector ends a process by a fault of its own, in two forms: CONTRIBUTING.md
// has the evidence (golang/go#78156). The second form is a SIGSEGV without a panic: it is
// outside of Go code, in the detector that synctest.Run has called.
var (
	detectorCheck = regexp.MustCompile(`^ThreadSanitizer: CHECK failed: tsan_rtl\.cpp:346 `)
	detectorCrash = regexp.MustCompile(`\[running, synctest bubble \d+\]:\nruntime\.systemstack_switch`)
)

// endedByDetector reports whether the fault of the race detector is all that the package
// has printed: no test that failed, no panic, no line of a log.
func (f failure) endedByDetector() bool {
	found, dump := false, ""
	for line := range strings.Lines(f.output) {
		switch {
		case dump != "" && strings.HasPrefix(line, "exit status "):
			if !detectorCrash.MatchString(dump) {
				return false
			}
			found, dump = true, ""
		case dump != "":
			dump += line
		case line == "SIGSEGV: segmentation violation\n":
			dump = line
		case detectorCheck.MatchString(line):
			found = true
		case !machinery.MatchString(line):
			return false
		}
	}
	return found && dump == ""
}

// machinery matches the lines that go test prints around the output of the tests.
var machinery = regexp.MustCompile(`^(?:(?:ok|\?|FAIL) *\t|FAIL$|-test\.shuffle |exit status )`)
