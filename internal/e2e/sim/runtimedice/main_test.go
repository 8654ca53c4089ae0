package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheRuntimeHasWhatIsReplaced(t *testing.T) {
	overlay, err := write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if !strings.Contains(string(b), filepath.Join("runtime", c.file)) {
			t.Errorf("%s is not replaced: %s", c.file, b)
		}
	}
}
