// Command testrun runs go test -race on packages, and runs a package that fails again,
// twice and alone. If it passes both times, the run goes on, and the last lines name the
// tests that failed, as in
//
//	FLAKY: github.com/pawl-go/pawl/etcdlock TestWatch
//
// A failure that tells more than a test's verdict is never repeated: a data race, a
// panic, a test that hangs, a leak, a package that does not compile, and a violation of
// the rules of locks that a checker has found. A checker marks its findings with the
// prefix "VIOLATION: ".
//
// Tests that prove nothing where they run ([skip.Unproven]) are printed at the end.
//
//	go run ./internal/testrun [-keep FOLDER] [FLAGS OF GO TEST] -- PACKAGE... [-- PACKAGE...]
//
// The groups of packages run one after the other. FOLDER gets flaky.txt and unproven.txt.
package main
