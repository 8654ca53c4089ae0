// Package mongolock keeps locks in a MongoDB database: a replica set, a sharded cluster,
// or a single server. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/mongolock"
//
//	locks, err := pawl.Open(ctx, "mongodb://localhost:27017/app?replicaSet=rs0", nil)
//
// With your own client of mongo-driver v2, [New] makes the driver over one of its
// databases.
//
// The tests were run on FerretDB v1.24.2, behind a proxy that forwards one request at a
// time, and not on MongoDB itself. Set PAWL_TEST_MONGODB_URL to run them on your server.
// The code for change streams, elections and retried writes follows MongoDB's manual.
//
// # Which URLs are there?
//
// MongoDB's, mongodb:// and mongodb+srv://, with its own parameters, and with
//
//	collection=NAME   sets Options.Collection
//	retention=24h     sets Options.Retention
//	push=false        sets Options.NoPush
//
// The database is "pawl" if the URL has none. The driver ignores parameters about reads
// and writes, such as w and readPreference.
//
// Each new connection reads tlsCAFile, tlsCertificateKeyFile and the other files of
// certificates again.
//
// # What is guaranteed?
//
// Names are documents. Each step replaces a document if it still has the version that the
// driver read. MongoDB does that atomically, so if two steps replace the same version,
// one of them changes nothing. A majority acknowledges each write, from its journal,
// before the driver returns, so an election loses no grant. A single server acknowledges
// each write from its journal.
//
// # Whose clock decides?
//
// The clock of the primary decides, and no client's clock. MongoDB cannot refuse an
// update that arrives too late. So the server writes its clock into the document
// ($currentDate) during the update. The document also has the step's window of time, the
// new value, and the previous value. If the stamp is outside of the window, the update is
// void for all readers, see package locktable/swap/stamped. The answer to the update has
// the stamp.
//
// After an election another machine's clock decides. Synchronize the clocks (NTP): a
// lease ends earlier or later by the difference of the next primary's clock. Fences rise
// in either case, unless the server has deleted a name, see [Options.Retention].
//
// # What does a lock cost?
//
// Acquire and release take a round trip each for a name that this driver has seen before,
// and two for a new name. A release that grants to a waiter takes one more. Many leases
// are renewed in two round trips. A lease costs no goroutine and no connection.
//
// # How does a waiter learn of its grant?
//
// On a replica set, by a change stream; a driver opens one when it first waits or holds.
// On a single server the driver polls. The pause is a twelfth of the wait so far: 200
// polls a second at first, 5 a second after a long wait.
//
// # What has to be set up?
//
// Nothing, on MongoDB 4.4.2 or later. On first use, the driver creates the two
// collections, and the TTL indexes by which the server deletes old names and signals. The
// user needs readWrite on the database. Diagnose (`pawl doctor`) checks that.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser; [driver.As] finds them.
package mongolock
