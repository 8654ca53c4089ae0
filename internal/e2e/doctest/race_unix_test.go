//go:build unix && race

package doctest

// The command is built as this test is: then what it consists of is there already.
var buildFlags = []string{"-race"}
