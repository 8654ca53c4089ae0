package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// maxRepeated is how many packages may fail and be run again. If more fail, the machine
// or the change is the cause, and repeating would hide it.
const maxRepeated = 2

func main() {
	flags, packages, flaky, err := parseArguments(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	if !run(flags, packages, flaky) {
		os.Exit(1)
	}
}

// parseArguments splits the command line. The file for flaky tests is empty if -flaky is
// not given.
func parseArguments(args []string) (flags, packages []string, flaky string, err error) {
	end := slices.Index(args, "--")
	if end < 0 || end == len(args)-1 {
		return nil, nil, "", errors.New("usage: testrun [-flaky FILE] [FLAGS OF GO TEST] -- PACKAGE")
	}
	flags, packages = args[:end], args[end+1:]
	if len(flags) >= 2 && flags[0] == "-flaky" {
		flaky, flags = flags[1], flags[2:]
	}
	return flags, packages, flaky, nil
}

// run runs the tests, and reports whether the run may go on.
func run(flags, packages []string, flaky string) bool {
	output, passed := goTest(flags, packages)
	if passed {
		return true
	}
	failed := failures(output)
	if len(failed) == 0 {
		return false // go test itself failed
	}
	ok := true
	for _, f := range failed {
		if reason := f.neverRepeated(); reason != "" {
			fmt.Printf("RED: %s: %s\n", f.pkg, reason)
			ok = false
		}
	}
	if !ok {
		return false
	}
	if len(failed) > maxRepeated {
		fmt.Printf("RED: %d packages failed, and no more than %d are repeated\n", len(failed), maxRepeated)
		return false
	}
	var seen []string
	for _, f := range failed {
		if !passesAgain(f, flags) {
			fmt.Printf("RED: %s failed again\n", f.pkg)
			return false
		}
		seen = append(seen, f.flaky()...)
	}
	for _, line := range seen {
		fmt.Println(line)
	}
	if err := appendLines(flaky, seen); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		return false
	}
	return true
}

// passesAgain runs the package twice, alone, in the order of tests in which it failed.
func passesAgain(f failure, flags []string) bool {
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

// goTest runs go test -race, shows its output, and returns it.
func goTest(flags, packages []string) (output string, passed bool) {
	var kept bytes.Buffer
	c := exec.Command("go", slices.Concat([]string{"test", "-race"}, flags, packages)...)
	c.Stdout = io.MultiWriter(os.Stdout, &kept)
	c.Stderr = c.Stdout
	passed = c.Run() == nil
	return kept.String(), passed
}

// appendLines appends lines to a file, which it creates if it is missing.
func appendLines(file string, lines []string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, strings.Join(lines, "\n")+"\n"); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
