package dashboard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pawl-go/pawl/internal/basictest"
)

// The tests of the pages run in Chromium. They are in a module of their own, so that no
// program depends on the driver of the browser: see browser/doc.go.
func TestThePagesInABrowser(t *testing.T) {
	basictest.Nightly(t, "it builds two programs, and runs Chromium")
	t.Parallel()
	if os.Getenv("PAWL_TEST_REQUIRE") == "" {
		t.Skip("go test -C dashboard/browser . tries the pages in Chromium; make test-all does, too")
	}
	if runtime.GOOS != "linux" {
		t.Skip("it wants Linux, and Chromium")
	}
	binary, command := filepath.Join(t.TempDir(), "browser.test"), filepath.Join(t.TempDir(), "pawl")
	for _, args := range [][]string{
		{"test", "-C", "browser", "-buildvcs=false", "-race", "-c", "-o", binary, "."},
		{"build", "-C", "..", "-buildvcs=false", "-race", "-o", command, "./cmd/pawl"},
	} {
		build := exec.CommandContext(t.Context(), "go", args...)
		build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=", "CGO_ENABLED=1")
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("it cannot be built: %v\n%s", err, said)
		}
	}
	run := exec.CommandContext(t.Context(), binary, "-test.timeout=5m")
	run.Dir, run.Env = "browser", append(os.Environ(), "PAWL_COMMAND="+command)
	if said, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
