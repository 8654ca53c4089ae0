package dashboard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pawl-go/pawl/internal/basictest"
)

// The tests of the pages run in Chromium. They are a separate module, so that no program
// depends on chromedp: see browser/doc.go.
func TestThePagesInABrowser(t *testing.T) {
	basictest.SkipIfShort(t, "it builds two programs, and runs Chromium")
	t.Parallel()
	if os.Getenv("PAWL_TEST_REQUIRE") == "" {
		t.Skip("go test -C dashboard/browser . tests the pages in Chromium, and so does make test-all")
	}
	if runtime.GOOS != "linux" {
		t.Skip("it needs Linux and Chromium")
	}
	binary, command := filepath.Join(t.TempDir(), "browser.test"), filepath.Join(t.TempDir(), "pawl")
	for _, args := range [][]string{
		{"test", "-C", "browser", "-buildvcs=false", "-race", "-c", "-o", binary, "."},
		{"build", "-C", "..", "-buildvcs=false", "-race", "-o", command, "./cmd/pawl"},
	} {
		build := exec.CommandContext(t.Context(), "go", args...)
		build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=", "CGO_ENABLED=1")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, output)
		}
	}
	run := exec.CommandContext(t.Context(), binary, "-test.timeout=5m")
	run.Dir, run.Env = "browser", append(os.Environ(), "PAWL_COMMAND="+command)
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
