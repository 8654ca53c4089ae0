// Package servertest has what all packages that start servers for tests need: a process,
// a free port, a server for many tests, and a bad network. And it has the steps of which
// tests of a driver consist; a step that is not answered as it should be ends the test.
package servertest

// TB is the part of *testing.T that is needed here. This package does not import testing,
// so that no program takes it along by mistake.
type TB interface {
	Helper()
	Cleanup(f func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}
