//go:build embedded

package main

// leftOut is the end of an error that lists backends.
const leftOut = "; the others were left out by the build tag embedded"
