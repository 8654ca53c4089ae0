// Command testrun runs go test -race on packages. If one or two of them fail, it finally
// runs each of these twice more, alone. If they pass both times, the run passes, and the
// last lines name the tests that failed, as in
//
//	FLAKY: github.com/pawl-go/pawl/etcdlock TestWatch
//
// It repeats only tests that failed by their own verdict. It never repeats a data race, a
// panic, a test that hangs, a leak, a package that does not compile or ends without a
// verdict, and a violation of the rules of locks. A checker marks violations with the
// prefix "VIOLATION: ".
//
// At the end it prints the tests that prove nothing on this machine; see [skip.Unproven].
//
//	go run ./internal/testrun [-keep FOLDER] [FLAGS OF GO TEST] -- PACKAGE... [-- PACKAGE...]
//
// It runs the groups of packages one after the other. FOLDER gets flaky.txt and
// unproven.txt.
package main
