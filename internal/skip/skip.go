// Package skip is for tests that cannot be run here, or whose verdict says nothing.
// They are skipped, and internal/testrun prints and counts them, because a run in which
// many tests prove nothing must not look like one in which all pass.
package skip

import (
	"fmt"
	"os"
)

// List is the variable of the environment that names the file to which Unproven appends.
const List = "PAWL_TEST_UNPROVEN"

// TB has the methods of a testing.TB that Unproven needs.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Unproven skips the test, and notes why in the file of [List], if there is one. The
// reason is one line.
func Unproven(t TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if file := os.Getenv(List); file != "" {
		note(t, file, fmt.Sprintf("UNPROVEN: %s: %s\n", name(t), reason))
	}
	t.Skipf("%s", reason)
}

// note appends a line in one write, because packages run side by side.
func note(t TB, file, line string) {
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

// name is the name of a test.
func name(t TB) string {
	if named, ok := t.(interface{ Name() string }); ok {
		return named.Name()
	}
	return "a test"
}
