// Package drivertest is the test suite that every backend of Pawl must pass. The comments
// in [github.com/pawl-go/pawl/driver] are the contract, and the subtests here are its
// sentences.
//
// A backend needs a harness and one line:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{
//			Open: func(t testing.TB) driver.Driver {
//				d, err := mylock.Open(t.Context(), server.URL)
//				if err != nil {
//					t.Fatal(err)
//				}
//				return d
//			},
//			OpenThrough: func(t testing.TB, n *drivertest.Network) driver.Driver {
//				// the same, at n.Addr(server.Addr), or with n.Dial
//			},
//		})
//	}
//
// That is all for a backend with a server and a clock of its own: the suite lets real
// time pass, in short pieces, with 48 subtests side by side (or as many as -parallel
// says). If the clock of the backend can be injected, set [Harness.Clock]. Then the suite
// does not wait, it tests the exact instants of expiry, and time passes in the random
// comparison with memlock, too.
//
// With -short, a suite that lets real time pass begins each subtest with half of
// [Harness.Unit], but with at least 500 ms, or with a whole unit if that is shorter. It
// runs the subtest again with twice that time if it fails and was late. The few subtests
// that wait for many units are left out. Every promise of a backend is still tested.
//
// With [Harness.OpenThrough] the suite puts a proxy between a client and its servers. The
// proxy delays requests past their end, slows them down, loses answers, and cuts
// connections. For a backend in memory or in a file, set NoNetwork.
//
// Run begins with the topic Basics, and ends with it if one of the basics fails. The
// other topics begin, and are reported, in an order in which the most useful failure
// comes first. Each failure has a line that begins "look at:". If a backend has one
// fault, the suite should report it within 30 s: two [Harness.Patience] after the first
// failure no other subtest begins, and subtests that still wait end.
//
// The suite needs no empty backend: it uses new names in each run. It finds abilities by
// type assertion on the driver itself, skips what the driver cannot do, and logs that.
//
// docs/internals/writing-a-backend.md and docs/internals/writing-a-store.md each write a
// backend, and show what the suite reports about first tries.
//
// A suite that cannot fail proves nothing. So broken_test.go runs it on drivers with one
// fault each, and requires that the subtest for the fault fails.
//
// This package stays v0 when the root package becomes v1, see package driver: a new
// version may ask more of a backend.
package drivertest
