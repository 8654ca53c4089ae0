//go:build embedded

package main

// leftOutHint is the end of an error that lists backends.
const leftOutHint = "; the others were left out by the build tag embedded"
