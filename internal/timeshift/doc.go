// Package timeshift sets the wall clock only of a server that a test has started, by a
// preloaded library, or by code in the memory of a Go program.
package timeshift
