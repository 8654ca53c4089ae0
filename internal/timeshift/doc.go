// Package timeshift sets the wall clock of one server that a test has started, and of no
// other process, by a preloaded library, or by code in the memory of a Go program.
package timeshift
