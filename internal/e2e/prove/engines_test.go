//go:build unix

package main

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/backends"
	"github.com/pawl-go/pawl/internal/basictest"
)

var update = flag.Bool("update", false, "write the engines into nightly.yml")

func TestEachBackendHasAnEngine(t *testing.T) {
	for _, b := range backends.All {
		if len(b.Schemes) > 0 && len(b.Engines) == 0 {
			t.Errorf("internal/backends has no engine for %s", b.Folder)
		}
	}
	if named, started := slices.Sorted(slices.Values(engineNames())), slices.Sorted(maps.Keys(allEngines)); !slices.Equal(named, started) {
		t.Errorf("internal/backends names the engines %q, but allEngines has %q", named, started)
	}
}

func TestTheNightlyWorkflowRunsAllEngines(t *testing.T) {
	const file = "../../../.github/workflows/nightly.yml"
	text, err := os.ReadFile(file)
	basictest.NoError(t, err)
	line := "engine: [" + strings.Join(engineNames(), ", ") + "]"
	want := regexp.MustCompile(`engine: \[.*\]`).ReplaceAllLiteral(text, []byte(line))
	if *update {
		basictest.NoError(t, os.WriteFile(file, want, 0o600))
		return
	}
	if !strings.Contains(string(text), line+"\n") {
		t.Errorf("nightly.yml has no line %s; go test ./internal/e2e/prove -update writes it", line)
	}
}
