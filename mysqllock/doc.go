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
//	mysql://[USER:PASSWORD@]HOST[:PORT]/DATABASE   mariadb: means the same
//	mysql:USER:PASSWORD@tcp(HOST:PORT)/DATABASE    a DSN of go-sql-driver
//
// In the first form user and password are percent-encoded. [Open] also takes a DSN
// without mysql:. The parameters are the same in both forms:
//
//	prefix=pawl_          sets Options.Prefix
//	retention=24h         sets Options.Retention
//	create=false          sets Options.MustExist
//	pool=16               the largest number of connections
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
//	timeout=5s            the time limit for connecting
//	serverPubKey=NAME     a key that was registered with go-sql-driver
//	compress=true         compress the traffic
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
// MariaDB 10.11. The driver creates two tables on first use, see [Schema] and `pawl
// schema mysql`. The user needs SELECT, INSERT, UPDATE and DELETE in them, and CREATE
// only if the driver creates them. The driver refuses a read-only server.
//
// # How does a step work?
//
// A step is one UPDATE, or INSERT, that commits by itself, in one round trip (prepared,
// on connections of the driver's own pool). It replaces the row of the name if the row
// still has the version that the driver has read, and if the server's clock is within a
// window of 50 ms, or four round trips. Otherwise it changes nothing, and the driver
// computes the step again from the stored entry. No transaction stays open between
// statements, so a client that is paused or disconnected keeps no row locked, and a
// request that arrives after its window has no effect.
//
// A step compares the window with SYSDATE, the time of its evaluation, when the row is
// locked. Therefore the driver refuses a server with sysdate-is-now. A commit that hangs
// after that can still make a grant visible too late. So a release writes even if it
// finds nothing to release: its write waits for the lock of the row, until the hanging
// commit has succeeded or failed.
//
// # Whose clock decides?
//
// The server's; the client's clock may be wrong. A new lease lasts longer by the width of
// the step's window. If the server's clock is set back, leases last longer; if it is set
// forward, leases end early. A fence is the server's clock in microseconds, or the last
// fence plus one if that is greater, so fences rise in either case.
//
// # How does a waiter learn of its grant?
//
// The server cannot push, so the driver polls. One goroutine reads the entries of all
// names that its process waits for, in one statement that locks nothing. The pause is an
// eighth of the time since the last change of a name, between 5 ms and 250 ms. A waiter
// further back in the queue polls less often: each waiter ahead of it adds 5 ms to the
// shortest pause, and 250 ms to the longest, which is at most 1 s. So the next waiter
// gets a busy name within about 5 ms. If the name was held for seconds, the waiter gets
// it within an eighth of that time. A long wait costs four reads a second. While a
// process holds leases, it checks twice a second whether they were broken. If a holder
// dies, the head of the queue sends a request when the holder's lease ends.
//
// The waiter's driver finds the grant in the entry that it reads. So a release writes
// only the entry, and no signal. Only a broken lease gets a signal, which is a row in the
// second table.
//
// # What do many waiters cost?
//
// All waiters for a name are in its row, and each renews its place by writing the row. So
// the cost grows with the square of the number of waiters: 200 processes that wait for
// one name take a quarter of a core of MariaDB, and 2.2 MB of its log a second. Do not
// use this backend, or a lock at all, for many hundreds of waiters for one name. Hundreds
// of names with a few waiters each are cheap.
//
// # What survives a crash?
//
// Every acknowledged grant, if innodb_flush_log_at_trx_commit is 1, the default.
// Replication is asynchronous: a failover can lose the last grants, and the new primary
// can grant the names again while the first holder still relies on its lease. The fence
// of the second holder is greater. Diagnose (`pawl doctor`) checks these settings.
//
// On Galera a transaction locks a row on its own node only. If two transactions change
// the row on two nodes, the first to commit wins. The other one fails with 1213, and the
// driver repeats the step. So two nodes never grant a name at the same time. But leases
// end by the clock of the node that a client asks, and [CheckLease] locks the row on its
// node only. In a trial by hand, with two nodes and six clients, no two of 1,927 grants
// overlapped.
//
// # Can my transaction depend on the lease?
//
// Yes, with [CheckLease].
//
// # What can its driver do?
//
// It implements driver.Driver, driver.Signaler, driver.Watcher, driver.Lister,
// driver.LeaseBreaker, driver.FenceRaiser and driver.Diagnoser; [driver.As] finds them.
// [LeaseChecker] is for transactions of the work.
package mysqllock
