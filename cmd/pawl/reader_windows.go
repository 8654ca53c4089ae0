package main

import "errors"

// awaitNoReader returns false, because Windows does not report the end of a reader. The
// next write fails.
func awaitNoReader() bool { return false }

var errNoReader = errors.New("standard output has no reader")
