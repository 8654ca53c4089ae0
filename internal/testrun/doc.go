// Command testrun runs go test -race on packages. If one or two of them fail, it runs
// each again at the end, twice and alone. If they pass both times, the run has passed,
// and the last lines name the tests that failed, as in
//
//	FLAKY: github.com/pawl-go/pawl/etcdlock TestWatch
//
// A failure that is more than a test's verdict is never repeated: a data race, a panic, a
// test that hangs, a leak, a package that does not compile or ends without a verdict, and
// a violation of the rules of locks that a checker has found. A checker marks its
// findings with the prefix "VIOLATION: ".
//
// Tests that prove nothing on this machine ([skip.Unproven]) are printed at the end.
//
//	go run ./internal/testrun [-keep FOLDER] [FLAGS OF GO TEST] -- PACKAGE... [-- PACKAGE...]
//
// The groups of packages run one after the other. FOLDER gets flaky.txt and unproven.txt.
package main
