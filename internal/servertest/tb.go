// Package servertest has the parts of tests with servers: a process, a free port, a
// server for many tests, and a bad network. It also has the steps of the tests of a
// driver; a step with a wrong answer ends the test.
package servertest

// TB is the part of *testing.T that is needed here. This package does not import testing,
// so that no program links it by mistake.
type TB interface {
	Helper()
	Cleanup(f func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}
