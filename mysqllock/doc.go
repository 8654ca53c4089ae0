// Package mysqllock keeps locks in MySQL or MariaDB. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/mysqllock"
//
//	locks, err := pawl.Open(ctx, "mysql://user:password@localhost:3306/app", nil)
//
// With your own *sql.DB of go-sql-driver/mysql, [New] makes the driver.
//
// # Which URLs are there?
//
//	mysql://[USER:PASSWORD@]HOST[:PORT]/DATABASE   mariadb: is the same
//	mysql:USER:PASSWORD@tcp(HOST:PORT)/DATABASE    a DSN of go-sql-driver, as it is
//
// In the first form user and password are percent-encoded. [Open] also takes a DSN
// without mysql:. The parameters are the same in both forms:
//
//	prefix=pawl_          the first three are fields of Options: Prefix
//	retention=24h         Retention
//	create=false          MustExist
//	pool=16               how many connections there are at most
//	socket=/PATH          a Unix socket, in the first form
//	ca_cert=FILE          TLS, and trust only the authorities in this PEM file
//	client_cert=FILE      TLS, with the client's own certificate, and
//	client_key=FILE       its key
//	server_name=NAME      TLS, and the name in the certificate, if it is not the host's
//	skip_verify=true      TLS, and trust any certificate
//
// Each new connection reads these files again.
//
// Of the parameters of go-sql-driver, these matter here:
//
//	tls=true              TLS; or skip-verify, or preferred
//	timeout=5s            for a connection to be made
//	serverPubKey=NAME     a key that was registered with go-sql-driver
//	compress=true         compress what is sent
//	maxAllowedPacket=N, readTimeout=1m, writeTimeout=10s,
//	connectionAttributes=..., allowCleartextPasswords=true,
//	allowFallbackToPlaintext=true, allowNativePasswords=false,
//	allowOldPasswords=true, checkConnLiveness=false
//
// The driver accepts the following ones, so that you can use the DSN of a program, but
// they change nothing: charset=, collation=, loc=, parseTime=, timeTruncate=,
// interpolateParams=, multiStatements=, clientFoundRows=, columnsWithAlias=,
// rejectReadOnly=. The driver refuses variables of the session, and any other name.
//
// # What does the server need?
//
// MySQL 8 or later, or MariaDB 10.6 or later, with InnoDB; the driver was tested on
// MariaDB 10.11. The driver makes two tables on first use, see [Schema] and `pawl schema
// mysql`. The user needs SELECT, INSERT, UPDATE and DELETE in them, and CREATE only if
// the driver makes them. A server that is read-only is refused.
//
// # How does a step work?
//
// A step is one UPDATE, or INSERT, that commits by itself, in one round trip (prepared,
// on connections of the driver's own pool). It replaces the row of the name if the row
// still has the version that the driver read before, and if the server's clock stands
// within a window of 50 ms, or four round trips. Otherwise it changes nothing, and the
// driver computes the step again from the stored entry. No transaction stays open between
// statements, so a client that is paused or cut off keeps nothing locked, and a request
// that arrives too late finds its window closed.
//
// UTC_TIMESTAMP is the time when a statement began, and the statement may wait long for
// the lock of the row. Judged by that time, a claim that its client gave up a minute ago
// could still be granted. SYSDATE is the time of its evaluation, when the row is locked.
// So the driver refuses a server with sysdate-is-now. A commit that hangs after that can
// still make a grant visible too late. So a release writes even if it finds nothing to
// release: the write waits for the lock of the row, until the hanging commit has
// succeeded or failed.
//
// # Whose clock decides?
//
// The server's; the client's clock may be wrong. A step lengthens a new lease by the
// width of its window. When the server's clock is set back, leases last longer; when it
// is set forward, leases end early. Fences are microseconds of the server's clock, or the
// last fence plus one, and so rise in either case.
//
// # How does a waiter learn of its grant?
//
// The server cannot push, so the driver polls. One goroutine reads the entries of all
// names that its process waits for, in one statement that locks nothing. The pause is an
// eighth of the time since something last happened to a name, between 5 ms and 250 ms. A
// waiter that is not at the head of the queue waits 5 ms for each waiter ahead of it. So
// a name under contention is handed over within about 5 ms, the waiter for a name that is
// held for seconds finds out after an eighth of that time, and a long wait costs four
// reads a second. While a process holds leases, it checks twice a second whether they
// were taken from it. When a holder dies, the head of the queue asks when the holder's
// lease ends.
//
// This is why Properties().PushesGrants is true. If it were false, the root package would
// poll: not with one read for the process, but with an Acquire for each waiting
// goroutine, which writes a place to the disk. The driver finds signals instead of
// sending them: a grant is in the entry that the waiter reads, so a holder that passes
// the name on writes only the entry, and leaves nothing to tidy up. Only a lease that is
// taken from its holder gets a row of its own.
//
// # What do many waiters cost?
//
// All waiters for a name are in its row, and each keeps its place by writing the row.
// With 200 processes that wait for one name, that is 120 writes a second of 20 kB each.
// Each process also polls 4.5 times a second, mostly to find nothing new. Together this
// takes a quarter of a core of MariaDB, and 2.2 MB of its log a second. The cost grows
// with the square of the number of waiters. So do not use this backend, or a lock at all,
// for many hundreds of waiters for one name. Hundreds of names with a few waiters each
// are cheap.
//
// # What survives a crash?
//
// All that the server has acknowledged, if innodb_flush_log_at_trx_commit is 1, the
// default: then each grant is durable. Replication is asynchronous: a failover can lose
// the last grants, and the new primary can grant the names again while the first holder
// still trusts its lease. The fence of the second holder is greater. Diagnose
// (`pawl doctor`) checks all of this.
//
// On Galera a transaction locks a row on its own node only. If two transactions change
// the row on two nodes, the first to commit wins. The other one fails with 1213, and the
// driver repeats the step. So no two nodes grant the same lease. But leases end by the
// clock of the node that a client asks, and [CheckLease] holds up only the steps on its
// node. In a trial by hand, with two nodes and six clients, no two of 1,927 grants
// overlapped.
//
// # Can my transaction depend on the lease?
//
// Yes, see [CheckLease]: the strongest safety that a lock can give.
//
// # What can its driver do?
//
// Beside the methods of driver.Driver it has those of driver.Signaler, driver.Watcher,
// driver.Lister, driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser;
// [driver.As] finds them. [LeaseChecker] is for transactions of the work.
package mysqllock
