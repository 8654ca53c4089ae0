package otellock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// The test of the dashboard uses the metrics that the observer really exports. It is a
// separate module, so that no user's program depends on Prometheus: see dashboard/doc.go.
func TestTheDashboardShowsTheMetrics(t *testing.T) {
	skipIfShort(t, "it builds and runs Prometheus")
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	if os.Getenv("PAWL_TEST_SERVERS") == "none" {
		t.Skip("it runs Prometheus")
	}
	binary := filepath.Join(t.TempDir(), "dashboard.test")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-C", "dashboard", "-buildvcs=false", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		if os.Getenv("PAWL_TEST_REQUIRE") != "" {
			t.Fatalf("it cannot be built: %v\n%s", err, output)
		}
		t.Skipf("it cannot be built: %v\n%s", err, output)
	}
	run := exec.CommandContext(t.Context(), binary)
	run.Dir = "dashboard"
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
