//go:build unix

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the golden files: what the command says")

var golden, _ = filepath.Abs("testdata/golden") // some tests go elsewhere

// wantGolden compares what is said with a file, so that a change of it is seen in a diff.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(golden, name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what it says now: see the diff after go test ./cmd/pawl -update\n%s", file, got)
	}
}

func TestHelpIsAsInTheGoldenFiles(t *testing.T) {
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		var out bytes.Buffer
		path := strings.Fields(c.CommandPath())
		code := execute(&voice{out: &out, err: &out}, append(path[1:], "--help"))
		if code != 0 {
			t.Errorf("%s --help: exit code %d", c.CommandPath(), code)
		}
		wantGolden(t, strings.Join(path, "-")+".txt", out.String())
		for line := range strings.SplitSeq(out.String(), "\n") {
			if len(line) > 80 {
				t.Errorf("%s --help is wider than 80 columns: %s", c.CommandPath(), line)
			}
		}
		for _, below := range c.Commands() {
			if c.Name() != "completion" && !below.Hidden { // the rest is cobra's, or not seen
				each(below)
			}
		}
	}
	each(newRoot(&voice{}))
}
