package main

import (
	"fmt"
	"strings"
	"testing"
)

// docs/cli.md documents each exit code for authors of scripts, and so does the help of
// run.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	t.Parallel()
	manual := document(t, "docs/cli.md")
	codesOfRun := []int{exitUsage, exitUnavailable, exitHeld, exitLost, exitNotExecutable, exitNotFound}
	for _, code := range codesOfRun {
		if !strings.Contains(exitCodes, fmt.Sprintf("\n%5d  ", code)) {
			t.Errorf("the help of run lacks %d", code)
		}
	}
	for _, code := range append(codesOfRun, exitOther, exitUnsound) {
		if row := fmt.Sprintf("\n| %d", code); !strings.Contains(manual, row+" |") && !strings.Contains(manual, row+",") {
			t.Errorf("docs/cli.md lacks %d", code)
		}
	}
	if row := fmt.Sprintf("\n| %d + n |", exitSignal); !strings.Contains(manual, row) || !strings.Contains(exitCodes, "128 + n") {
		t.Errorf("docs/cli.md lacks the row%s, or the help of run lacks 128 + n", row)
	}
}
