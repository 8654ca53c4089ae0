// Package doctest tests the examples of the documents. The tests run the commands of
// marked blocks against real servers, and compare their output with the page. The Go code
// of the pages about locks, testing, transactions, Kubernetes and your own client is
// here, so that it is compiled and run.
package doctest
