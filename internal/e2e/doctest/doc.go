// Package doctest has tests of what the documents show. The commands of their blocks that
// are marked are run, against real servers, and print what stands below them; the Go code
// of the pages about testing and about writing a backend is code that is compiled and run
// here.
package doctest
