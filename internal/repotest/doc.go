// Package repotest holds the rules about the repository itself, as tests: which packages
// import which, what the documents list, and how long lines, files and documents may be.
package repotest
