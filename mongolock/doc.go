// Package mongolock keeps locks in a MongoDB database: a replica set, a sharded cluster,
// or a server alone. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/mongolock"
//
//	locks, err := pawl.Open(ctx, "mongodb://localhost:27017/app?replicaSet=rs0", nil)
//
// With your own client of mongo-driver v2, [New] makes the driver over one of its
// databases.
//
// The tests were run on FerretDB v1.24.2, behind a proxy that lets one request through at
// a time, and not on MongoDB itself. Set PAWL_TEST_MONGODB_URL to run them on yours.
// Change streams, elections and retried writes follow MongoDB's documentation.
//
// # Which URLs are there?
//
// MongoDB's, mongodb:// and mongodb+srv://, with its own parameters, and with
//
//	collection=NAME   the fields of [Options]: Collection
//	retention=24h     Retention
//	push=false        NoPush
//
// The database is "pawl" if the URL has none. Parameters that say how to read and write
// (w, readPreference, and the like) are allowed, and ignored.
//
// Each new connection reads tlsCAFile, tlsCertificateKeyFile and the other files of
// certificates again.
//
// # What is guaranteed?
//
// Names are documents. Each step replaces a document if it still has the version that the
// driver read. MongoDB does that atomically, so if two steps replace the same version,
// one of them changes nothing. A majority acknowledges each write, in its journal, before
// the driver returns, so an election forgets no grant. A server alone acknowledges each
// write from its journal.
//
// # Whose clock decides?
//
// The clock of the primary decides, and no client's clock. MongoDB cannot refuse an
// update that arrives too late. So the server writes its clock into the document
// ($currentDate) during the update. The document also has the step's window of time, the
// new value, and the previous value. If the stamp is outside of the window, all readers
// take the update as void, see package locktable/swap/stamped. The writer finds the
// stamp in the answer to its update.
//
// After an election another machine's clock decides. Keep the clocks together (NTP): a
// lease ends earlier or later by the lead or the lag of the next primary's clock. Fences
// rise in either case, unless a name was forgotten, see [Options.Retention].
//
// # What does a lock cost?
//
// Acquire and release take a round trip each for a name that this driver has seen before,
// and two for a new name. A release that passes the name on takes one more. Many leases
// are renewed in two round trips. A lease costs no goroutine and no connection.
//
// # How does a waiter learn of its grant?
//
// On a replica set, by a change stream; a driver opens one when it first waits or holds.
// On a server alone the driver polls, after a twelfth of the time that it has waited: 200
// times a second at first, 5 times a second after a long wait.
//
// # What has to be set up?
//
// Nothing, on MongoDB 4.4.2 or later. The driver makes the two collections, and the TTL
// indexes by which the server forgets old names and signals, on first use. The user needs
// readWrite on the database. If Diagnose (`pawl doctor`) finds nothing, the driver has
// what it needs.
//
// # What can its driver do?
//
// Beside the methods of driver.Driver it has those of driver.Signaler, driver.Watcher,
// driver.Lister, driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser;
// [driver.As] finds them.
package mongolock
