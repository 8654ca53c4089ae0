package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The tag embedded leaves out the backends that need a server, and errors say so.
func TestTheEmbeddedBuildHasNoServers(t *testing.T) {
	skipIfShort(t, "it builds the command once more")
	t.Parallel()
	program := filepath.Join(t.TempDir(), "pawl")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-tags", "embedded", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	for args, want := range map[string]string{
		"--url mem: run x -- go version":     "go version",
		"--url redis://127.0.0.1 ls":         "want one of mem: sqlite:; the others were left out by the build tag embedded",
		"schema postgres":                    "want one backend of none; the others were left out by the build tag embedded",
		"--url sqlite:" + program + ".db ls": "",
	} {
		if out, _ := exec.Command(program, strings.Fields(args)...).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("pawl %s printed %q; want %q", args, out, want)
		}
	}
}
