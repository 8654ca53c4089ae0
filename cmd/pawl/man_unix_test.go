//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The manual pages have the text of --help, so two golden files suffice for their form.
func TestManualsAreAsInTheGoldenFiles(t *testing.T) {
	dir := t.TempDir()
	if code := execute(&output{out: os.Stderr, err: os.Stderr}, []string{"man", dir}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 14 {
		t.Errorf("the pages are %q, want 14 or more; %v", pages, err)
	}
	for _, name := range []string{"pawl.1", "pawl-break.1"} {
		text := mustGet(os.ReadFile(filepath.Join(dir, name)))(t)
		wantGolden(t, name, string(text))
	}
}
