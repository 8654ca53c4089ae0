//go:build unix && race

package doctest

// The test builds the command with its own build mode, so that the build cache already
// has its packages.
var buildFlags = []string{"-race", "-trimpath"}
