// Package postgreslock keeps locks in a PostgreSQL database, version 12 or later, that is
// there already.
//
//	d, err := postgreslock.New(pool, nil) // a *pgxpool.Pool of yours, or NewDB with a *sql.DB
//	locks, err := pawl.New(d, nil)
//
// or, by URL, pawl.Open(ctx, "postgres://user:password@host/database", nil).
//
// # URLs
//
// The form is that of libpq and pgx: "postgres://" or "postgresql://", user and password,
// one host or several, the database, and the parameters that they know (sslmode,
// target_session_attrs, application_name, pool_max_conns, search_path, ...). PGHOST and
// the like, a passfile and a service file count, too. Our own parameters are:
//
//   - schema=NAME: see [Options.Schema]
//   - prefix=NAME: see [Options.Prefix]
//   - retention=DURATION: see [Options.Retention], as in "24h"
//   - push=false: see [Options.NoPush]
//
// A pool that is opened so has at most 16 connections, or pool_max_conns. Of several
// hosts it takes the one that can be written (target_session_attrs=read-write). A
// step waits for a row that a transaction keeps locked until its request is nearly over,
// 10 s at most, on a quarter of the connections at most. So lock_timeout is refused.
//
// # What has to be set up?
//
// Nothing, if the user may create a schema: the tables are made on first use. Else an
// administrator runs what "pawl schema postgres" prints, see [Schema], and grants the
// user USAGE of the schema, and SELECT, INSERT, UPDATE and DELETE on its tables. They are
// in a schema of their own, "pawl", and people can read them:
//
//	SELECT name, holders, fence, until FROM pawl.locks
//
// The column entry has the tokens of the holders. Whoever can read it, and write, can
// release what others hold.
//
// # What is guaranteed?
//
// A step is one row that changes in one transaction, by the clock of the server. What was
// granted is as durable as the server's commits: with synchronous_commit=on and fsync=on,
// the defaults, a crash of the server loses no grant. Giving a name back that nobody
// waits for does not wait for the disk: if it is lost, it is a lease that runs out. A
// failover to a standby that lags can lose the last grants, and so grant a name twice,
// unless the standby is synchronous; fences rise all the same as long as the clocks of
// both agree. With a synchronous standby open by URL: a pool of yours has the server
// cancel what its caller gave up, and PostgreSQL then commits what waits for the standby
// without it. A standby itself is refused. [Driver.Diagnose] looks at all that.
//
// Nobody is granted a name early: a step computes with a time that the server's clock has
// passed, and what begins lasts longer by as much as the server allows it to come later.
// When the server's clock is set back, leases last longer by as much; when it is set
// forward, they end early, and their holders hear of it by the next renewal.
//
// # How fast is it?
//
// An acquire or a release of a name that this client has seen is one statement and one
// commit: one round trip. Otherwise it is two. Renewals of many leases share one
// statement. Where several clients are at the same name, a step locks its row, and takes
// one round trip more. A name is handed over as soon as the next holder is notified.
//
// # How does a waiter hear that it is granted?
//
// By LISTEN, on one connection beside the pool, which is there only while a claim of this
// client waits or holds, or while it watches a name. If that connection is lost, it is
// made anew, and what has happened meanwhile is read from the table.
//
// A client that watches a name says so in its entry, for a minute at a time. Whoever
// changes the entry notifies it in the same statement; a name that nobody watches costs
// no notification.
//
// # What may sessions set?
//
// Anything: names travel as bytes of UTF-8, functions are called with their schema, and a
// step sets what it depends on. So clients whose roles, URLs or pools have another
// client_encoding, DateStyle, isolation level or search_path lock the same names, by the
// same clock. A session that may not write is refused.
//
// # What about PgBouncer?
//
// In statement mode it is refused. In transaction mode a connection that listens hears
// nothing. The driver finds that out by a notification to itself; then Properties.Push
// and PushesChanges are false, and waiting claims ask again, every 5 to 250 ms. A pool
// that is opened by URL behind a pooler keeps no prepared statements. Give a pool of your
// own pgx.QueryExecModeCacheDescribe or pgx.QueryExecModeExec there.
//
// # Can the work itself check the lock?
//
// If the work is in the same database: [CheckLease], in the transaction of the work.
package postgreslock
