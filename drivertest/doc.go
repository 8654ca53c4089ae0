// Package drivertest is what every backend of Pawl must pass. The comments in
// [github.com/pawl-go/pawl/driver] are the contract, and the subtests here are its
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
// says). A backend
// whose clock can be injected says so with [Harness.Clock]; then no time is waited for,
// the instants of expiry themselves are looked at, and time passes in the random
// comparison with memlock, too.
//
// With [Harness.OpenThrough] the suite has a network of its own between a client and its
// servers. It holds up requests until their end has passed, makes them slower, and cuts
// connections. A backend without a network, in memory or in a file, says NoNetwork.
//
// Run returns when all subtests have. It begins with the topic Basics, and ends with it
// if one of the basics fails: that one is reported. The other topics begin, and are
// reported, in an order in which the most telling failure comes first. Each failure comes
// with a line that begins "look at:". Of a backend that is wrong in one way the suite
// wants to say so within 30 s: two [Harness.Patience] after the first failure no other
// subtest begins, and those that still wait end.
//
// The suite needs no empty backend: it uses names of its own in each run. Abilities are
// found as the root package finds them, by type assertion; what a driver cannot do is not
// tested, and the log says so.
//
// docs/writing-a-backend.md and docs/writing-a-store.md make a backend each, and show
// what the suite says of first tries.
//
// A suite that cannot fail proves nothing: broken_test.go runs it on drivers with one
// fault each, and wants the subtest that names the fault to fail.
//
// This package stays v0 when the root package becomes v1, see package driver: a new
// version may ask more of a backend.
package drivertest
