// Package postgreslock keeps locks in an existing PostgreSQL database, version 12 or
// later.
//
//	d, err := postgreslock.New(pool, nil) // a *pgxpool.Pool of yours, or NewDB with a *sql.DB
//	locks, err := pawl.New(d, nil)
//
// or, by URL, pawl.Open(ctx, "postgres://user:password@host/database", nil).
//
// # URLs
//
// libpq and pgx have the same URLs: "postgres://" or "postgresql://", user and password,
// one host or several, the database, and the parameters that both know (sslmode,
// target_session_attrs, application_name, pool_max_conns, search_path, ...). Variables
// such as PGHOST, a passfile and a service file also work. Each new connection reads the
// passfile and the files of certificates again. Pawl's own parameters are:
//
//   - schema=NAME: see [Options.Schema]
//   - prefix=NAME: see [Options.Prefix]
//   - retention=DURATION: see [Options.Retention], as in "24h"
//   - push=false: see [Options.NoPush]
//
// A pool opened by URL has at most 16 connections, or pool_max_conns. Of several hosts
// the driver takes the one that accepts writes (target_session_attrs=read-write). A step
// waits for a locked row until shortly before its ctx ends, in statements that wait 5 s
// at most. Only a quarter of the connections may wait like that. Several renewals in one
// call do not wait. Each statement sets its own lock_timeout, so a URL with lock_timeout
// is refused.
//
// # What has to be set up?
//
// Nothing, if the user may create a schema: the driver makes the tables on first use.
// Otherwise an administrator runs what "pawl schema postgres" prints, see [Schema], and
// grants the user USAGE of the schema, and SELECT, INSERT, UPDATE and DELETE on its
// tables. The tables are in a schema of their own, "pawl", and people can read them:
//
//	SELECT name, holders, fence, until FROM pawl.locks
//
// The column entry has the tokens of the holders. A user that can read and write this
// column can release the locks of other clients.
//
// # What is guaranteed?
//
// A step changes one row, or the rows of a claim for several names, in one transaction,
// and uses the clock of the server. A grant is as durable as the server's commits: with
// synchronous_commit=on and fsync=on, the defaults, a crash of the server loses no grant.
// A release does not wait for the disk if no client waits for the name: if a crash loses
// the release, the lease expires instead. A failover to a standby that lags can lose the
// last grants, and so grant a name twice, unless the standby is synchronous. Fences still
// rise as long as the clocks of both servers agree. If you rely on a synchronous standby,
// open by URL, not with your own pool. A pool cancels the statement when its ctx ends,
// and PostgreSQL then commits without waiting for the standby. The driver refuses a
// standby. Diagnose checks all of this.
//
// No name is granted early: a step computes with a time that the server's clock has
// passed. The step may arrive later than that time, up to a limit; a new lease lasts
// longer by that limit. If the server's clock is set back, leases last longer by the
// difference. If it is set forward, leases end early, and the holder detects that with
// its next renewal.
//
// # How fast is it?
//
// An acquire or a release takes one round trip: one statement, which commits. The first
// step of a client on a name takes two. When several clients change a name at the same
// time, one of them succeeds, and the others repeat the step. Renewals of many leases
// share one statement. A waiter holds the name once its notification arrives.
//
// # How does a waiter learn of its grant?
//
// By LISTEN, on one connection outside of the pool. The client keeps that connection only
// while one of its claims waits or holds, or while it watches a name. If the connection
// is lost, the client opens another one, and reads from the table what has happened
// meanwhile.
//
// A client that watches a name records the watch in the entry, for a minute at a time. A
// step that changes the entry notifies the watchers in the same statement. A name without
// watchers costs no notification.
//
// # What may sessions set?
//
// Anything: a step sends names as bytes of UTF-8, calls functions with their schema, and
// makes the settings that it depends on. So clients whose roles, URLs or pools have
// another client_encoding, DateStyle, isolation level or search_path lock the same names,
// with the same clock. The driver refuses a session that may not write.
//
// # What about PgBouncer?
//
// The driver refuses statement mode. In transaction mode a listening connection receives
// nothing. The driver tests this with a notification to itself. If it does not arrive,
// Properties.PushesGrants and PushesChanges are false, and waiting claims poll the table,
// every 5 to 250 ms. A pool opened by URL behind a pooler keeps no prepared statements.
// Give your own pool pgx.QueryExecModeCacheDescribe or pgx.QueryExecModeExec there.
//
// # Can the work itself check the lock?
//
// Yes, if its data is in the same database: by [CheckLease] in its transaction.
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser, driver.AllAcquirer and driver.Diagnoser;
// [driver.As] finds them. [LeaseChecker] is for transactions of the work.
package postgreslock
