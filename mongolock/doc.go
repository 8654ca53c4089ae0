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
// a time, not on MongoDB itself; set PAWL_TEST_MONGODB_URL to run them on yours. Change
// streams, elections and retried writes follow MongoDB's documentation.
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
// Names are documents, and each step replaces a document if it still has the version that
// the driver read. MongoDB does that atomically, so of two steps that replace the same
// version one changes nothing. A majority acknowledges each write, in its journal, before
// the driver returns: an election forgets no grant. A server alone acknowledges from its
// journal.
//
// # Whose clock decides?
//
// The primary's, and no client's. MongoDB cannot refuse an update that arrives too late.
// So the server writes its clock into the document ($currentDate) at the moment of the
// update. The document also has the window of time for which the step was computed, the
// new value, and the value before. If the stamp is outside of the window, all readers
// take the update as void: see package locktable/optimistic/stamped. The writer finds the
// stamp in the answer to its update.
//
// After an election another machine's clock decides. Keep the clocks together (NTP): a
// lease ends earlier or later by as much as the next primary's clock is ahead or behind.
// Fences rise in either case, unless a name was forgotten, see [Options.Retention].
//
// # What does a lock cost?
//
// Acquire and release take a round trip each for a name that this driver has seen before,
// two at the first time, and one more for a release that passes the name on. Many leases
// are renewed in two round trips. A lease costs no goroutine and no connection.
//
// # How does a waiter learn of its grant?
//
// On a replica set, by a change stream; a driver opens one when it first waits or holds.
// On a server alone the driver polls, after a tenth of the time that it has waited: 200
// times a second at first, 4 times a second after a long wait.
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
