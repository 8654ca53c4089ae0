// Package repotest tests rules about the repository itself: which packages import which,
// what the documents must list, and how long lines, files and documents may be. For
// example, a page that docs/README.md does not list fails a test, and so does a broken
// link. make lint runs the tests. The race detector excludes them, because it makes
// go/types seven times slower and they start no goroutines.
package repotest
