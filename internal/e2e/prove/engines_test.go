//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
)

func TestTheNightlyWorkflowRunsAllEngines(t *testing.T) {
	const file = ".github/workflows/nightly.yml"
	text, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "engine: [" + strings.Join(engineNames(), ", ") + "]\n"; !strings.Contains(string(text), want) {
		t.Errorf("%s has no line %s", file, want)
	}
}
