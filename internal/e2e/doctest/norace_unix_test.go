//go:build unix && !race

package doctest

var buildFlags = []string{"-trimpath"}
