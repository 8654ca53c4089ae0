// Package mysqllock keeps locks in MySQL or MariaDB. Most programs need only its URL:
//
//	import _ "github.com/pawl-go/pawl/mysqllock"
//
//	locks, err := pawl.Open(ctx, "mysql://user:password@localhost:3306/app", nil)
//
// With a *sql.DB of go-sql-driver/mysql that you have already, [New] makes the driver.
//
// # Which URLs are there?
//
//	mysql://[USER:PASSWORD@]HOST[:PORT]/DATABASE   mariadb: is the same
//	mysql:USER:PASSWORD@tcp(HOST:PORT)/DATABASE    a DSN of go-sql-driver, as it is
//
// In the first form user and password are percent-encoded. [Open] takes a DSN without
// mysql: as well. Parameters are, in both forms:
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
// And those of go-sql-driver, of which these matter here:
//
//	tls=true              TLS; or skip-verify, or preferred
//	timeout=5s            for a connection to be made
//	serverPubKey=NAME     a key that was registered with go-sql-driver
//	compress=true         what is sent
//	maxAllowedPacket=N, readTimeout=1m, writeTimeout=10s,
//	connectionAttributes=..., allowCleartextPasswords=true,
//	allowFallbackToPlaintext=true, allowNativePasswords=false,
//	allowOldPasswords=true, checkConnLiveness=false
//
// The others are accepted, so that the DSN of a program can be used, and change nothing
// here: charset=, collation=, loc=, parseTime=, timeTruncate=, interpolateParams=,
// multiStatements=, clientFoundRows=, columnsWithAlias=, rejectReadOnly=. Variables of
// the session are refused, as is any other name.
//
// # What does the server need?
//
// MySQL 8 or later, or MariaDB 10.6 or later, with InnoDB; MariaDB 10.11 is what it was
// tested on. Two tables are made by the first use, see [Schema] and `pawl schema mysql`;
// the user needs SELECT, INSERT, UPDATE and DELETE in them, and CREATE only if they are
// to be made. A server that is read-only is refused.
//
// # How does a step work?
//
// Each is one UPDATE, or INSERT, that commits by itself, in one round trip (prepared, on
// connections that are ours): it replaces the row of the name if that has still the
// version that was read before, and if the server's clock stands within a window of 50
// ms, or four round trips. If not, it changes nothing, and is tried again on what is
// there now. No transaction is ever open while a client thinks, so a client that is
// paused or cut off keeps nothing locked, and a request that arrives too late finds its
// window closed.
//
// UTC_TIMESTAMP tells when a statement began, which may be long before it gets the lock
// of the row: by it a claim that was given up a minute ago could still be granted.
// SYSDATE tells when it is evaluated, which is with the row locked. That is why a server
// with sysdate-is-now is refused. A commit that hangs after that can still make a grant
// known too late; so a release writes even if it finds nothing to release, and with that
// waits for the lock of the row, until what is under way is there or gone.
//
// # Whose clock decides?
//
// The server's. What begins with a step lasts as much longer as the window is wide. The
// client's clock may be wrong; that of the server, set back, makes leases last longer,
// and set forward, end early. Fences are microseconds of the server's clock, or the last
// fence and one, and so rise in either case.
//
// # How do waiters hear of a grant?
//
// The server cannot push. The driver looks, with one goroutine and one statement for all
// that its process waits for: the entries of those names, which locks nothing. The pause
// is an eighth of the time since something last happened to a name, 5 ms at the least and
// 250 ms at the most; for those behind the head of the queue it is 5 ms for each that
// stands ahead. So under contention a name is handed over within 5 ms or so, a waiter in
// a name that is held for seconds finds out after an eighth of that, and one that waits
// for long costs four reads a second. While a process holds leases it asks twice a second
// whether they were taken from it. When a holder dies, the head of the queue asks at the
// moment when its lease ends.
//
// This is why Properties().Push is true, and not false, which would have the root package
// ask for each waiter by itself: with a whole Acquire, which writes to keep the place and
// is made durable, instead of a read; and for each waiting goroutine its own, instead of
// one for the process. Signals are found, not sent: a grant stands in the entry that the
// waiter looks at, so whoever passes the name on writes nothing but that, and nothing has
// to be tidied away. Only what is taken from a holder gets a row of its own.
//
// # What do many waiters cost?
//
// All who wait for a name stand in its row, and each keeps its place by writing it. With
// 200 processes that wait for one name that is 120 writes a second of 20 kB each, and 4.5
// looks a second by each of them, in which the server finds out that there is nothing
// new: a quarter of a core of MariaDB, and 2.2 MB of its log a second. It grows with the
// square of their number. So for many hundreds in one name this is not the backend, nor
// is it a good use of a lock; hundreds of names with a few waiters each cost nothing of
// that kind.
//
// # What survives a crash?
//
// What the server has acknowledged, if innodb_flush_log_at_trx_commit is 1, the default:
// then each grant is durable. Replication is asynchronous: the last grants
// before a fail-over can be lost, and granted again while the first holder still believes
// in its lease. The fence of the second is greater. [Driver.Diagnose] (`pawl doctor`)
// looks at all of it.
//
// On Galera a row is locked on its own node only, and of two transactions that change it
// on two nodes the first to commit wins: the other one fails with 1213, and the step is
// tried again on what is there then. So no two nodes grant the same. But each has a clock
// of its own, by which leases end there, and [CheckLease] holds up the steps of its node
// only. This is by Galera's documentation; it was not run.
//
// # Can my transaction depend on the lease?
//
// Yes, see [CheckLease]: the strongest safety that a lock can give.
package mysqllock
