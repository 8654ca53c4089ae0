// Package repotest holds the rules about the repository itself, as tests: which packages
// import which, what the documents list, and how long lines, files and documents may be.
// A page that docs/README.md does not list fails a test, and so do a link that leads
// nowhere, and an error that docs/errors.md does not explain. make lint runs them. Under
// the race detector there are none: go/types takes seven times as long with it, and no
// goroutine of ours runs here.
package repotest
