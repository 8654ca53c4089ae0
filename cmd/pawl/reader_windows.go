package main

import "errors"

// awaitNoReader cannot find out when the reader of standard output ends. The next write
// does.
func awaitNoReader() bool { return false }

var errNoReader = errors.New("standard output has no reader")
