package testservers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Command returns the path of a server's command in PATH, or the greatest match of the
// patterns. Without a match it skips the test, or fails it if PAWL_TEST_REQUIRE is set.
func Command(tb TB, name, install string, patterns ...string) (path string) {
	tb.Helper()
	skipWithoutServers(tb)
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return slices.Max(found)
		}
	}
	if os.Getenv("PAWL_TEST_REQUIRE") != "" {
		tb.Fatalf("%s is missing, and PAWL_TEST_REQUIRE is set", name)
	}
	tb.Skipf("%s is missing: install %s to run this test", name, install)
	return ""
}

// skipWithoutServers skips the test under PAWL_TEST_SERVERS=none.
func skipWithoutServers(tb TB) {
	tb.Helper()
	if os.Getenv("PAWL_TEST_SERVERS") == "none" {
		tb.Skipf("PAWL_TEST_SERVERS=none: this test needs a server")
	}
}
