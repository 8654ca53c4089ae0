// Package servertest has helpers for tests with servers: processes, free ports, servers
// for many tests, and a proxy that fails. It also has checks of drivers; most of them end
// the test if they fail.
package servertest

// TB has the methods of *testing.T that this package uses. The package does not import
// testing, so that no program links testing by mistake.
type TB interface {
	Helper()
	Cleanup(f func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}
