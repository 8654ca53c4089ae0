// Package skip skips tests that cannot run on this machine, or that prove nothing on it.
// internal/testrun prints them, because a run in which many tests prove nothing must not
// look like a run in which all pass.
package skip

import (
	"fmt"
	"os"
)

// List is the environment variable that names the file to which Unproven appends.
const List = "PAWL_TEST_UNPROVEN"

// TB has the methods of testing.TB that Unproven uses.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Unproven skips the test, and appends the reason, which must be one line, to the file of
// [List] if that is set.
func Unproven(t TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if file := os.Getenv(List); file != "" {
		appendLine(t, file, fmt.Sprintf("UNPROVEN: %s: %s\n", testName(t), reason))
	}
	t.Skipf("%s", reason)
}

// appendLine appends a line in one write, because tests of several packages run at once.
func appendLine(t TB, file, line string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatalf("skip: %v", err)
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		t.Fatalf("skip: %v", err)
	}
}

// testName returns the name of a test.
func testName(t TB) string {
	if named, ok := t.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "a test"
}
