// Package timeshift sets the wall clock of a server that a test has started, and no other
// process's, by a library that is loaded before all others.
package timeshift
