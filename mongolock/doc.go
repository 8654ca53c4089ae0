// Package mongolock keeps locks in a MongoDB database: a replica set, a sharded cluster,
// or a server alone. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/mongolock"
//
//	locks, err := pawl.Open(ctx, "mongodb://localhost:27017/app?replicaSet=rs0", nil)
//
// With a client of mongo-driver v2 that you have already, [New] makes the driver over one
// of its databases.
//
// What was run: its tests were run on FerretDB v1.24.2 behind a proxy that lets one
// request through at a time, not on MongoDB itself; set PAWL_TEST_MONGODB_URL to run them
// on yours. Change streams, elections and retried writes follow MongoDB's documentation.
//
// # Which URLs are there?
//
// Those of MongoDB, mongodb:// and mongodb+srv://, with its own parameters; and with
//
//	collection=NAME   the fields of [Options]: Collection
//	retention=24h     Retention
//	push=false        NoPush
//
// The database is "pawl" if the URL has none. Parameters that say how to read and write
// (w, readPreference, and the like) may be there, and do nothing.
//
// # What is guaranteed?
//
// Names are documents, and each step replaces one if it has still the version that was
// seen. MongoDB does that atomically, so of two that replace the same version one has
// done nothing. Each write is acknowledged by a majority, in its journal, before anybody
// is told: an election forgets no grant. A server alone acknowledges from its journal.
//
// # Whose clock decides?
//
// The primary's, and no client's. An update cannot be told to take effect before a time,
// or never. So it has the server write its clock into the document ($currentDate) in the
// moment in which it takes effect, beside the window of time for which it was computed,
// the new value and the one before. If the stamp is outside of the window the update is
// void, for all who read it: see package locktable/optimistic/stamped. The writer sees
// the stamp in the answer to its update.
//
// After an election another machine's clock decides. Keep them together (NTP): a lease
// ends so much earlier or later as the next primary's clock is ahead or behind. Fences
// rise in either case, unless a name was forgotten, see [Options.Retention].
//
// # What does a lock cost?
//
// A round trip each for acquire and release where this driver has seen the name before,
// two at the first time, and one more for a release that passes the name on. Many leases
// are renewed in two. A lease costs no goroutine and no connection.
//
// # How does a waiter hear of it?
//
// Where there are replicas, by a change stream; a driver has one, once it waits or holds.
// Else it looks, after a tenth of the time that it has waited: 200 times a second at
// first, 4 times when it has waited for long.
//
// # What has to be set up?
//
// Nothing, on MongoDB 4.4.2 or later. The two collections, and the TTL indexes by which
// the server forgets old names and signals, are made on first use. The user needs
// readWrite on the database. A driver whose Diagnose (`pawl doctor`) is silent has what
// it needs.
package mongolock
